//! Permits for concurrent requests: neither one address nor one operation gets all of them, and requests that
//! need no permit are always answered.

use std::time::Duration;

use mesh_testbed::{Answer, Mesh, MeshSetup, eventually};
use mesh_tests::{Call, MeshClient, Rpc, TableLock, assert_problem, assert_refused, fixture, metric, raw};
use tokio::{task::JoinHandle, time::timeout};

use crate::limits::{HOT, get_for};

const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Eight permits at the edge, of which one owner gets at most half. The query service has enough connections
/// for all that the edge sends, repeated reads included.
fn small_limits(setup: MeshSetup<'_>) -> MeshSetup<'_> {
    let setup = setup.env("MESH_EDGE_IN_FLIGHT", "8").env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.1");
    setup.env("MESH_QUERY_LIST_CONNECTIONS", "32")
}

/// A read of the locked table, with another query for each number.
fn blocked_path(at: usize) -> String {
    format!("{HOT}?pagination.first={}", at + 1)
}

/// A read of the table `withdrawals`.
fn withdrawal(at: usize) -> String {
    format!("/api/v2/withdrawal/{at:064}")
}

/// Sends reads, of these clients and paths, that wait for a lock, until so many wait.
async fn send_blocked(
    mesh: &Mesh,
    mesh_client: &MeshClient,
    reads: impl IntoIterator<Item = (String, String)>,
    waiting: f64,
) -> Vec<JoinHandle<Answer>> {
    let ask = |(client, path): (String, String)| {
        let mesh_client = mesh_client.clone();
        tokio::spawn(async move { get_for(&mesh_client, &client, &path).await })
    };
    let blocked_reads = reads.into_iter().map(ask).collect();
    let edge = mesh.service("edge");
    edge.until_metric("http_server_active_requests", |active| active >= waiting).await;
    blocked_reads
}

async fn get_promptly(mesh_client: &MeshClient, client: &str, path: &str) -> Answer {
    timeout(TIME_LIMIT, get_for(mesh_client, client, path)).await.expect("it does not wait")
}

/// Asserts that exempt requests are answered while others wait.
async fn assert_exempt_answered(mesh: &Mesh, mesh_client: &MeshClient, client: &str) {
    assert_eq!(get_promptly(mesh_client, client, "/health").await.status, 200);
    assert_eq!(get_promptly(mesh_client, client, "/limits").await.status, 200);
    for page in ["/livez", "/readyz"] {
        assert_eq!(mesh.service("edge").admin(page).await.status, 200, "{page}");
    }
}

#[tokio::test]
async fn a_slow_operation_leaves_permits_for_the_others() {
    let (database, mesh, mesh_client) = fixture::start(small_limits).await;
    let locked = TableLock::acquire(&database, "delegations_current").await;
    let reads = (0..4).map(|at| (format!("203.0.113.{at}"), blocked_path(at)));
    let blocked_reads = send_blocked(&mesh, &mesh_client, reads, 4.0).await;
    let refused = get_promptly(&mesh_client, "203.0.113.9", &blocked_path(9)).await;
    let reason = "too many requests of this kind are being answered";
    assert_eq!(assert_problem(&refused, 503, 14, 10_000).message, reason);
    let refused = Rpc::connect(&mesh).await.call(&Call::from_path(&blocked_path(9)).unwrap()).await;
    assert_refused(refused, 14, 10_000);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_requests_shed_total{reason=\"operation\"}").await, 2);
    assert_eq!(get_promptly(&mesh_client, "203.0.113.9", "/accounts").await.status, 200, "another operation");
    assert_exempt_answered(&mesh, &mesh_client, "203.0.113.9").await;
    locked.release().await;
    for answer in blocked_reads {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    assert_eq!(get_promptly(&mesh_client, "203.0.113.9", &blocked_path(9)).await.status, 200);
}

#[tokio::test]
async fn operations_that_wait_for_locks_fill_no_service() {
    let (database, mesh, mesh_client) = fixture::start(|setup| {
        setup.env("MESH_QUERY_IN_FLIGHT", "4").env("MESH_QUERY_LIST_CONNECTIONS", "1")
    })
    .await;
    let (delegations, withdrawals) = tokio::join!(
        TableLock::acquire(&database, "delegations_current"),
        TableLock::acquire(&database, "withdrawals")
    );
    let paths = (0..8).flat_map(|at| [blocked_path(at), withdrawal(at)]);
    let blocked: Vec<_> = paths.map(|path| mesh_client.get_later(&path)).collect();
    mesh.service("query").until_metric("mesh_requests_in_flight ", |reads| reads >= 8.0).await;
    for path in ["/accounts", "/api/v2/markets", &format!("/api/v2/oracle/spec/{}", fixture::ORACLE_SPEC)] {
        let answer = timeout(Duration::from_secs(2), mesh_client.get(path)).await;
        assert_eq!(answer.expect("it waits").status, 200, "{path}");
    }
    assert_eq!(mesh.service("query").admin("/readyz").await.status, 200);
    delegations.release().await;
    withdrawals.release().await;
    blocked.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn one_client_leaves_permits_for_the_others() {
    let (database, mesh, mesh_client) = fixture::start(small_limits).await;
    let greedy = "203.0.113.9";
    let (hot, cold) = tokio::join!(
        TableLock::acquire(&database, "delegations_current"),
        TableLock::acquire(&database, "withdrawals")
    );
    let of_greedy = |path: String| (greedy.to_owned(), path);
    let reads = (0..3).map(|at| of_greedy(blocked_path(at)));
    let mut blocked_reads = send_blocked(&mesh, &mesh_client, reads, 3.0).await;
    let refused = get_promptly(&mesh_client, greedy, &blocked_path(9)).await;
    let reason = "too many requests of this kind and client are being answered";
    assert_eq!(assert_problem(&refused, 503, 14, 10_000).message, reason);
    blocked_reads.extend(send_blocked(&mesh, &mesh_client, [of_greedy(withdrawal(1))], 4.0).await);
    let refused = get_promptly(&mesh_client, greedy, "/accounts").await;
    let reason = "too many requests of this client are being answered";
    assert_eq!(assert_problem(&refused, 503, 14, 10_000).message, reason);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_requests_shed_total{reason=\"address\"}").await, 2);
    eventually(TIME_LIMIT, "what is in memory is refused", async || {
        let other = get_promptly(&mesh_client, "203.0.113.10", "/accounts").await;
        assert_eq!(other.status, 200, "another client");
        // A cached answer needs no permit; it is fresh for a second.
        get_promptly(&mesh_client, greedy, "/accounts").await.status == 200
    })
    .await;
    assert_exempt_answered(&mesh, &mesh_client, greedy).await;
    hot.release().await;
    cold.release().await;
    for answer in blocked_reads {
        assert!([200, 404].contains(&answer.await.unwrap().status));
    }
}

#[tokio::test]
async fn an_ignored_body_takes_no_permit_while_it_arrives() {
    let (_database, mesh, _) = fixture::start(|setup| setup.env("MESH_EDGE_IN_FLIGHT", "1")).await;
    let mut slow_connections = Vec::new();
    for _ in 0..3 {
        let request = "GET /accounts HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{";
        slow_connections.push(raw::begin(&mesh.url(), request).await);
    }
    assert_eq!(get_promptly(&MeshClient::new(&mesh), "", HOT).await.status, 200);
    for mut connection in slow_connections {
        raw::send(&mut connection, "}").await;
        assert_eq!(raw::answer(&mut connection).await.status, 200);
    }
}
