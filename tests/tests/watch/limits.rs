//! How many watches there may be, and what they cost (W3, W7, W8).

use std::time::Duration;

use mesh_testbed::{eventually, http1::Connection};
use mesh_tests::{Events, MeshClient, Problem, assert_problem, metric};

use super::{LIMITS, start, withdrawal, write_block, write_trade};

async fn watch_for(client: &MeshClient, address: &str, path: &str) -> Result<Events, Problem> {
    let opened = Events::open(client, path, &[("x-forwarded-for", address)]).await;
    opened.map_err(|refused| {
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_problem(&refused, 429, 8, 10_000)
    })
}

#[tokio::test]
async fn a_watch_above_a_limit_is_refused_until_another_ends() {
    let (_database, mesh, client) = start(&[
        ("MESH_EDGE_WATCHES", "3"),
        ("MESH_EDGE_WATCHES_PER_ADDRESS", "2"),
        ("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ])
    .await;
    let limits = client.get("/limits").await.json();
    assert_eq!((&limits["rate"]["watches"], &limits["rate"]["watchesPerAddress"]), (&3.into(), &2.into()));
    let mut open = vec![watch_for(&client, "203.0.113.1", LIMITS).await.unwrap()];
    open.push(watch_for(&client, "203.0.113.1", LIMITS).await.unwrap());
    let refused = watch_for(&client, "203.0.113.1", LIMITS).await.unwrap_err();
    assert_eq!(refused.inner, "at most 2 at the same time");
    assert_eq!(client.get(LIMITS).await.status, 200, "a plain read is no watch");
    open.push(watch_for(&client, "203.0.113.2", "/watch?read=/api/v2/info").await.unwrap());
    let refused = watch_for(&client, "203.0.113.3", LIMITS).await.unwrap_err();
    assert_eq!(refused.inner, "at most 3 at the same time");
    assert_eq!(metric(&mesh, "edge", "mesh_edge_requests_limited_total{limit=\"watches\"}").await, 2);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches ").await, 3);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches_questions ").await, 2);
    open.clear();
    let is_free = async || watch_for(&client, "203.0.113.3", LIMITS).await.is_ok();
    eventually(Duration::from_secs(30), "the watches of disconnected clients still count", is_free).await;
    // A question without watchers is not re-read.
    mesh.service("edge").until_metric("mesh_edge_watches_questions ", |questions| questions == 0.0).await;
}

#[tokio::test]
async fn a_hundred_watchers_of_a_question_cost_one_read_a_block() {
    let (database, mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut watchers = Vec::new();
    for _ in 0..100 {
        let mut events = Events::open(&client, &withdrawal(), &[]).await.unwrap();
        events.event().await;
        watchers.push(events);
    }
    let calls =
        "rpc_server_call_duration_seconds_count{rpc_system_name=\"mesh\",rpc_method=\"GetWithdrawal\"";
    let before = metric(&mesh, "query", calls).await;
    for height in 4..8 {
        write_block(&writer, height, Some(&height.to_string())).await;
        for events in &mut watchers {
            assert_eq!(events.event().await.id, Some(height));
        }
    }
    let reads = metric(&mesh, "query", calls).await - before;
    assert!((4..=6).contains(&reads), "{reads} reads for 4 blocks");
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches_events_total ").await, 400);
}

/// Inserts trades with these numbers.
pub(super) fn trades(first: u64, last: u64) -> String {
    format!(
        "INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, \
         aggressor, buy_order, sell_order, type) \
         SELECT '2023-06-20 10:59:59.2+00'::timestamptz + n * interval '1 microsecond', 'aa', \
         '2023-06-20 10:59:59.2+00', n, repeat(md5(n::text), 2), market_id, price, size, buyer, seller, aggressor, \
         buy_order, sell_order, type FROM generate_series({first}, {last}) n, \
         (SELECT * FROM trades WHERE id = repeat('71', 32)) one"
    )
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_the_newest_state_and_no_heap_of_old_ones() {
    let (database, mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    // A page of some 500 kB a block, so that the buffers of the system are soon full.
    writer.batch_execute(&trades(1, 1000)).await.unwrap();
    let path = "/api/v2/trades";
    let mut slow = Connection::open_narrow(client.url(), 4096).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
    slow.send(request.as_bytes()).await.unwrap();
    let mut quick = Events::open(&client, path, &[]).await.unwrap();
    quick.event().await;
    let last = 4 + 18;
    for height in 4..last {
        write_trade(&writer, height).await;
        assert_eq!(quick.event().await.id, Some(height), "the other one is unharmed");
    }
    let (_, mut framing) = slow.head().await.unwrap().expect("a head");
    let mut received = Vec::new();
    let newest = format!("id: {}\n", last - 1);
    while !received.windows(newest.len()).any(|window| window == newest.as_bytes()) {
        let mut piece = Vec::new();
        assert!(slow.piece(&mut framing, &mut piece, 1 << 20).await.unwrap(), "the stream ended");
        received.append(&mut piece);
    }
    let received = String::from_utf8(received).unwrap();
    let ids: Vec<u64> = received.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
    assert!(ids.is_sorted() && ids.len() < 18, "{ids:?}");
    let skipped = metric(&mesh, "edge", "mesh_edge_watches_events_skipped_total ").await;
    assert!(skipped > 0 && skipped as usize == 19 - ids.len(), "{skipped} skipped, received {ids:?}");
}
