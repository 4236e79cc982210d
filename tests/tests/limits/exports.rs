//! The limit of concurrent downloads of one address.

use std::time::Duration;

use mesh_testbed::{Answer, retry};
use mesh_tests::{Call, LEDGER, MeshClient, Rpc, TableLock, assert_problem, assert_refused, fixture, metric};
use tokio::{task::JoinHandle, time::timeout};
use tonic::Request;

use crate::limits::get_for;

const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Repeats a download until it is not refused for the concurrent ones.
async fn download_until_accepted(mesh_client: &MeshClient) -> Answer {
    retry(TIME_LIMIT, async || {
        let answer = timeout(TIME_LIMIT, mesh_client.get(LEDGER)).await.expect("it is answered");
        if answer.status == 429 {
            Err("the place of a download that is over is not free")
        } else {
            Ok(answer)
        }
    })
    .await
}

/// Repeats a download of a locked table until it is not refused for the concurrent ones but waits for the
/// lock.
async fn download_until_blocked(mesh_client: &MeshClient) -> JoinHandle<Answer> {
    retry(TIME_LIMIT, async || {
        let mut download = mesh_client.get_later(LEDGER);
        let Ok(refused) = timeout(Duration::from_secs(1), &mut download).await else { return Ok(download) };
        assert_eq!(refused.unwrap().status, 429);
        Err("the place of a reader who left is not free")
    })
    .await
}

#[tokio::test]
async fn a_download_above_the_limit_is_refused_until_another_ends_or_its_client_disconnects() {
    let (database, mesh, mesh_client) = fixture::start(|setup| {
        setup.env("MESH_EDGE_EXPORTS_PER_ADDRESS", "2").env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.1")
    })
    .await;
    assert_eq!(mesh_client.get("/limits").await.json()["rate"]["exportsPerAddress"], 2);
    let rpc = Rpc::connect(&mesh).await;
    let called = Call::from_path(LEDGER).unwrap();

    // Two downloads that wait for the lock: one over HTTP, one over gRPC.
    let locked = TableLock::acquire(&database, "ledger").await;
    let over_http = mesh_client.get_later(LEDGER);
    let over_grpc = tokio::spawn({
        let (rpc, called) = (rpc.clone(), called.clone());
        async move { rpc.download(&called).await }
    });
    mesh.service("export").until_metric("mesh_requests_in_flight ", |pulls| pulls >= 2.0).await;
    locked.await_queries("export", 1, TIME_LIMIT).await;
    let refused = timeout(TIME_LIMIT, mesh_client.get(LEDGER)).await.expect("a refusal does not wait");
    assert_eq!(assert_problem(&refused, 429, 8, 10_000).inner, "at most 2 at the same time");
    let refused = timeout(TIME_LIMIT, rpc.stream(&called, Request::new(called.message.clone()))).await;
    assert_refused(refused.expect("a refusal does not wait").map(drop), 8, 10_000);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_requests_limited_total{limit=\"exports\"}").await, 2);
    assert_eq!(mesh_client.get("/accounts").await.status, 200, "other requests are not downloads");
    let other = tokio::spawn({
        let mesh_client = mesh_client.clone();
        async move { get_for(&mesh_client, "203.0.113.9", LEDGER).await }
    });
    mesh.service("export").until_metric("mesh_requests_in_flight ", |pulls| pulls >= 3.0).await;

    // A client that disconnects frees its permit at once, while the table is still locked.
    over_http.abort();
    let next = download_until_blocked(&mesh_client).await;
    locked.release().await;
    assert_eq!(next.await.unwrap().status, 200);
    assert_eq!(other.await.unwrap().status, 200);
    assert!(over_grpc.await.unwrap().is_ok());
    // Both permits are free again.
    for _ in 0..4 {
        assert_eq!(download_until_accepted(&mesh_client).await.status, 200);
        rpc.download(&called).await.expect("the one before is over");
    }
}
