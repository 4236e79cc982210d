//! The life cycle of services from outside: late start, graceful stop, kill, and clients that disconnect.

mod convention;
mod nats;

use std::{
    iter,
    process::Command,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mesh_testbed::{Answer, DevNode, Mesh, Service, eventually, nats as bus};
use mesh_tests::{MeshClient, NO_CACHE, ProxiedServer, TableLock, assert_problem, fixture, program, raw};
use reqwest::Method;
use serde_json::json;

/// The list that these tests make slow by a lock on its table.
const LIST: &str = "/api/v2/delegations";
const TABLE: &str = "delegations_current";

/// Time limit for what must happen at once.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Longest time from a client's disconnection until no statement of its request runs, and until others are served: half
/// of the deadline of a request.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Time limit for a start; meshes of other tests may start first.
const START_LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_stopping_service_accepts_no_requests_and_answers_pending_ones() {
    fixture::exclusively(async |database, mesh| {
        let mesh_client = MeshClient::new(mesh);
        let locked = TableLock::acquire(database, TABLE).await;
        let slow = mesh_client.get_later(LIST);
        locked.await_queries("query", 1, TIME_LIMIT).await;

        let query = mesh.service("query");
        let (status, ()) = tokio::join!(query.stop(), async {
            mesh_client.await_status("/accounts", 503).await;
            assert_eq!(query.admin("/readyz").await.status, 503, "it is stopping");
            assert_eq!(query.admin("/livez").await.status, 200, "it is alive until it has answered");
            locked.release().await;
        });
        let answer = slow.await.expect("the client does not panic");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(status.success(), "{status}");
    });
}

#[tokio::test]
async fn an_endless_query_does_not_delay_a_stop_beyond_its_grace() {
    let (database, mesh, mesh_client) = fixture::start(|setup| setup.env("MESH_STOP_GRACE_S", "1")).await;
    let locked = TableLock::acquire(&database, TABLE).await;
    let slow = mesh_client.get_later(LIST);
    locked.await_queries("query", 1, TIME_LIMIT).await;
    let started = Instant::now();
    let (status, took) = (mesh.service("query").stop().await, started.elapsed());
    assert!(status.success() && took < Duration::from_secs(3), "{status} after {took:?}");
    slow.abort();
}

#[test]
fn a_stopping_edge_answers_pending_requests_and_closes() {
    fixture::exclusively(async |database, mesh| {
        let locked = TableLock::acquire(database, TABLE).await;
        let mut idle = raw::begin(&mesh.url(), "GET /accounts HTTP/1.1\r\nHost: x\r\n\r\n").await;
        raw::answer(&mut idle).await;
        let mut busy = raw::begin(&mesh.url(), &format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        locked.await_queries("query", 1, TIME_LIMIT).await;

        let (status, ()) = tokio::join!(mesh.service("edge").stop(), async {
            assert_eq!(raw::rest(&mut idle).await, b"");
            locked.release().await;
            assert_eq!(raw::answer(&mut busy).await.status, 200);
            assert_eq!(raw::rest(&mut busy).await, b"");
        });
        assert!(status.success(), "{status}");
    });
}

#[tokio::test]
async fn a_submission_that_waits_for_a_block_is_answered_before_its_edge_ends() {
    // This node makes no blocks.
    let (node, database) = tokio::join!(DevNode::start(), fixture::database());
    let setup = Mesh::configure(&database).env("MESH_NODE_URL", node.url());
    let mesh = setup.env("MESH_RELAY_SIGNATURE_ALGO", "ed25519").env("MESH_STOP_GRACE_S", "2").start().await;
    let body = json!({"tx": node.transaction(1, "order"), "type": "TYPE_COMMIT"}).to_string();
    let waiting = tokio::spawn(Answer::to(mesh.request(Method::POST, "/transaction").body(body)));
    eventually(TIME_LIMIT, "the node gets no transaction", async || !node.received().is_empty()).await;
    let status = mesh.service("edge").stop().await;
    assert!(status.success(), "{status}");
    let problem = assert_problem(&waiting.await.expect("it is answered"), 504, 4, 90001);
    assert!(node.received().keys().any(|hash| hash.to_string() == problem.inner), "{problem:?}");
}

#[test]
fn a_killed_service_is_unavailable_at_once_and_answers_after_a_restart() {
    fixture::exclusively(async |_, mesh| {
        let mesh_client = MeshClient::new(mesh);
        for _ in 0..3 {
            assert_eq!(mesh_client.get(LIST).await.status, 200);
            mesh.service("query").kill().await;
            let started = Instant::now();
            assert_problem(&mesh_client.get(LIST).await, 503, 14, 10000);
            // Takes milliseconds on an idle machine; the deadline of the operation is ten seconds.
            assert!(started.elapsed() < Duration::from_secs(3), "after {:?}", started.elapsed());
            assert_eq!(mesh_client.get("/blockchain/height").await.status, 200, "the others do not mind");
            mesh.service_mut("query").restart().await;
            assert_eq!(mesh_client.get(LIST).await.status, 200, "a service that is ready answers");
        }
    });
}

#[tokio::test]
async fn a_request_whose_only_service_is_killed_fails_long_before_its_deadline() {
    let (database, mesh, mesh_client) = fixture::start(|setup| setup).await;
    let locked = TableLock::acquire(&database, TABLE).await;
    let slow = tokio::spawn(async move { (mesh_client.get(LIST).await, Instant::now()) });
    locked.await_queries("query", 1, TIME_LIMIT).await;
    // A read is sent up to this many times; only a lack of replies shows that its service is gone.
    mesh.service("query").until_metric("mesh_requests_in_flight ", |reads| reads == 3.0).await;
    mesh.service("query").kill().await;
    let killed = Instant::now();
    let (answer, answered) = slow.await.expect("the client does not panic");
    assert_eq!(answer.status, 503, "no replica is left: {answer:?}");
    assert!(answered - killed < Duration::from_secs(2), "after {:?}", answered - killed);
}

#[test]
fn the_query_of_a_client_that_disconnects_is_cancelled() {
    fixture::exclusively(async |database, mesh| {
        let logged_before = mesh.service("query").log().len();
        let locked = TableLock::acquire(database, TABLE).await;
        let request = async |size| {
            let request = format!("GET {LIST}?pagination.first={size} HTTP/1.1\r\nHost: x\r\n\r\n");
            raw::begin(&mesh.url(), &request).await
        };
        // More requests than the service has connections for lists, so that a lost connection would be noticed;
        // one after the other, since a request that gets no connection ends by itself. Then many at once.
        for sizes in (1..6).map(|size| size..size + 1).chain(iter::once(6..106)) {
            let clients = join_all(sizes.map(&request)).await;
            locked.await_queries("query", 1, TIME_LIMIT).await;
            drop(clients);
            let left = Instant::now();
            locked.await_queries("query", 0, GONE_WITHIN).await;
            assert_eq!(MeshClient::new(mesh).get("/api/v2/positions").await.status, 200);
            assert!(left.elapsed() < GONE_WITHIN, "a list of another table took {:?}", left.elapsed());
        }
        locked.release().await;
        assert_eq!(MeshClient::new(mesh).get(LIST).await.status, 200);
        let log = mesh.service("query").log().split_off(logged_before);
        let is_fault =
            |line: &str| line.contains("\"level\":\"ERROR\"") || line.contains("\"level\":\"WARN\"");
        assert!(!log.lines().any(is_fault), "a cancelled request is not an error: {log}");
    });
}

#[tokio::test]
async fn services_started_before_database_and_bus_become_ready_with_them() {
    let database = fixture::database().await;
    let to_database = ProxiedServer::start_cut(database.url()).await;
    let to_bus = ProxiedServer::start_cut(bus().await.url()).await;
    let setup = Mesh::configure(&database).env("MESH_DATABASE_URL", to_database.url());
    let setup = setup.env("MESH_BUS_URL", to_bus.url());
    let (mesh, ()) = tokio::join!(setup.start(), async {
        // All four services need the bus, three of them the database as well; without a node there is no `tx-relay`.
        eventually(START_LIMIT, "the bus is not tried", async || to_bus.refused() >= 10).await;
        to_bus.restore();
        eventually(START_LIMIT, "the database is not tried", async || to_database.refused() >= 6).await;
        to_database.restore();
    });
    for name in ["edge", "query", "node-info", "export"] {
        assert!(!mesh.service(name).has_ended(), "{name} waits for its servers; nothing starts it again");
    }
    for (_, path) in mesh_tests::cases::answered() {
        let answer = MeshClient::new(&mesh).get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_replica_that_gets_no_database_connection_is_unready_and_others_answer_its_reads() {
    const PREFIX: (&str, &str) = ("MESH_BUS_PREFIX", "full");
    let (database, mesh, mesh_client) =
        fixture::start(|setup| setup.env(PREFIX.0, PREFIX.1).env(NO_CACHE.0, NO_CACHE.1)).await;
    // The first replica has a connection for lists; the second one will get none.
    assert_eq!(mesh_client.get(LIST).await.status, 200);
    let second = Service::configure("query").env(PREFIX.0, PREFIX.1).database(&database).start().await;
    let client = database.connect().await;
    let limit = async |connections: i8| {
        let name = database.name();
        let sql = format!("ALTER DATABASE \"{name}\" CONNECTION LIMIT {connections}");
        client.batch_execute(&sql).await.expect("the owner may set it");
    };
    limit(1).await;
    eventually(TIME_LIMIT, "the second replica gets no read", async || {
        assert_eq!(mesh_client.get(LIST).await.status, 200);
        second.admin("/readyz").await.status == 503
    })
    .await;
    let unready = second.await_readiness(503, TIME_LIMIT).await;
    assert!(unready.contains("the database has no free connection"), "{unready}");
    assert_eq!(mesh.service("query").admin("/readyz").await.status, 200, "it has a connection");
    let timeouts = "db_client_connection_timeouts_total{db_client_connection_pool_name=\"lists\"}";
    assert!(second.metric(timeouts).await.abs() < 0.5, "no read has waited");
    limit(-1).await;
    second.await_readiness(200, TIME_LIMIT).await;
}

#[test]
fn a_service_reports_every_value_that_cannot_be_used_and_exits_with_64() {
    // Any text is valid, the file is read after the others, or another variable has to be correct first.
    const UNCHECKED: &str = "LISTEN_FDNAMES MESH_ADMIN_ADDRESS_FILE MESH_DATABASE_PASSWORD_FILE MESH_EDGE_KEYS_FILE \
        MESH_EDGE_TLS_CERT MESH_EDGE_TLS_KEY MESH_HISTORY_URL MESH_INGEST_EVENT_PREFIX \
        MESH_RELAY_SIGNATURE_ALGO OTEL_TRACES_SAMPLER_ARG";
    for service in ["edge", "query", "tx-relay", "export", "node-info", "ingest"] {
        let mut command = Command::new(program(service));
        let help = command.arg("--help").env_clear().output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let names = help.lines().filter(|line| line.starts_with(char::is_uppercase) && !line.contains(' '));
        let mut command = Command::new(command.get_program());
        let names: Vec<&str> = names.collect();
        let run = command.env_clear().envs(names.iter().map(|name| (name, "? *"))).output().unwrap();
        let printed = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(64), "{service}: {printed}");
        for name in names.iter().filter(|name| !UNCHECKED.split(' ').any(|unchecked| unchecked == **name)) {
            assert!(printed.contains(*name), "{service} does not name {name}: {printed}");
        }
    }
}
