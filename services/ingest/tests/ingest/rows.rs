//! Which rows a block becomes: order of events, columns that are filled in, times (N3 to N5, N7).

use std::time::Duration;

use mesh_testbed::{
    Collector, Database,
    scripted_node::{Chain, Version, event, hash, trade},
};
use sha2::{Digest, Sha256};

use crate::{SOON, configure, stored, text};

/// Rows of `trades` in one line each: sequence, transaction, price, time behind the block's.
const TRADES: &str = "SELECT coalesce(string_agg(concat_ws(' ', seq_num, left(tx_hash, 4), price,
        extract(microsecond FROM synthetic_time - block_time)), E'\\n' ORDER BY seq_num), '')
    FROM trades JOIN blocks USING (block_time) WHERE height = ";

#[tokio::test]
async fn events_of_each_version_become_rows_in_the_contracts_order() {
    for version in [Version::V037, Version::V038] {
        let (database, chain) = (Database::fresh().await, Chain::start(version).await);
        let asset = event(
            "mesh.assets",
            &[
                ("id", "\"as\\u0073et\""),
                ("name", ""),
                ("symbol", "A"),
                ("lifetime_limit", "1"),
                ("withdraw_threshold", "1"),
                ("status", "\"STATUS_ENABLED\""),
                ("msg_index", "0"),
                ("block_time", "2026-01-01T00:00:01.123456789Z"),
            ],
        );
        let proposal = event(
            "mesh.protocol_upgrade_proposals",
            &[
                ("upgrade_block_height", "9"),
                ("network_release_tag", "v2"),
                ("approvers", r#"["a","b\"c"]"#),
                ("status", "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING"),
            ],
        );
        let height = chain.add(vec![trade(3, "103"), event("other", &[("x", "y")])]);
        chain.change(height, |block| {
            block.begin = vec![asset, proposal, trade(1, "101")];
            block.txs = vec![
                (b"first".to_vec(), 0, vec![trade(2, "102"), event("transfer", &[])]),
                (b"second".to_vec(), 5, vec![trade(9, "109")]),
            ];
        });
        let _service = configure(&database, &chain).start().await;
        let client = database.connect().await;
        stored(&client, 1).await;
        let tx = hex::encode(Sha256::digest(b"first"));
        let expected = format!("0 0000 101 0\n1 {} 102 1\n2 0000 103 2", &tx[..4]);
        assert_eq!(text(&client, &format!("{TRADES} 1")).await, expected, "{version:?}");
        let asset = "SELECT id || '/' || name FROM assets JOIN blocks USING (block_time)";
        assert_eq!(text(&client, asset).await, "asset/", "nanoseconds are cut off");
        assert_eq!(
            text(&client, "SELECT approvers::text FROM protocol_upgrade_proposals").await,
            "{a,\"b\\\"c\"}"
        );
        assert_eq!(text(&client, "SELECT id FROM chain").await, "net-1");
        assert_eq!(text(&client, "SELECT hash FROM blocks").await, hash(1));
        let time = text(&client, "SELECT block_time::text FROM blocks").await;
        assert_eq!(time, "2026-01-01 00:00:01.123456+00");
    }
}

/// Block times rise, and are later than the times that were filled in for the block before, also when the
/// service is started between two blocks.
#[tokio::test]
async fn block_times_follow_from_the_chain_alone() {
    let chain = Chain::start(Version::V038).await;
    for _ in 0..3 {
        let height = chain.add((0..3).map(|id| trade(id, "1")).collect());
        chain.change(height, |block| block.time = "2026-01-01T00:00:00.5Z".to_owned());
    }
    let times = async |database: &Database| {
        let client = database.connect().await;
        stored(&client, 3).await;
        text(&client, "SELECT string_agg(block_time::text, ' ' ORDER BY height) FROM blocks").await
    };
    let (one, two) = (Database::fresh().await, Database::fresh().await);
    let _service = configure(&one, &chain).start().await;
    let expected = "2026-01-01 00:00:00.5+00 2026-01-01 00:00:00.500003+00 2026-01-01 00:00:00.500006+00";
    assert_eq!(times(&one).await, expected);
    for height in 1..=3 {
        let (blocks, after) = (chain.state.lock().blocks.clone(), height + 1);
        chain.state.lock().blocks.retain(|height, _| *height < after);
        let service = configure(&two, &chain).start().await;
        stored(&two.connect().await, height).await;
        service.kill().await;
        chain.state.lock().blocks = blocks;
    }
    assert_eq!(times(&two).await, expected);
}

#[tokio::test]
async fn a_store_begins_at_the_configured_height_or_the_oldest_block_of_the_node() {
    for (from, expected) in [(None, "3 4 5"), (Some("4"), "4 5")] {
        let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
        (0..5).for_each(|_| _ = chain.add(Vec::new()));
        chain.state.lock().lowest = 3;
        let setup = configure(&database, &chain);
        let setup = from.into_iter().fold(setup, |setup, from| setup.env("MESH_INGEST_FROM", from));
        let service = setup.start().await;
        let client = database.connect().await;
        stored(&client, 5).await;
        let heights = "SELECT string_agg(height::text, ' ' ORDER BY height) FROM blocks";
        assert_eq!(text(&client, heights).await, expected);
        service.await_readiness(200, SOON).await;
    }
}

/// A block at the node is in the store without a wait for the next status.
#[tokio::test]
async fn blocks_behind_are_stored_together() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    for height in 0..400 {
        chain.add((0..20).map(|id| trade(height * 20 + id, "7")).collect());
    }
    let service = configure(&database, &chain).start().await;
    let client = database.connect().await;
    stored(&client, 400).await;
    assert_eq!(text(&client, "SELECT count(*)::text FROM trades").await, "8000");
    let transactions = text(&client, "SELECT count(DISTINCT xmin::text)::text FROM blocks").await;
    assert!(transactions.parse::<u32>().unwrap() < 200, "{transactions} transactions for 400 blocks");
    let metrics = service.admin("/metrics").await;
    let metrics = metrics.text();
    for line in [
        "mesh_ingest_height 400",
        "mesh_ingest_lag_blocks 0",
        "mesh_ingest_rows_total{table=\"trades\"} 8000",
        "mesh_ingest_block_duration_seconds_count 400",
        "mesh_ingest_halted{reason=\"too_large\"} 0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line} is not in {metrics}");
    }
    tokio::time::timeout(Duration::from_secs(5), service.stop()).await.unwrap();
}

#[tokio::test]
async fn a_block_is_one_trace_from_the_node_into_the_store() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    let collector = Collector::start().await;
    chain.add(vec![trade(1, "1")]);
    let setup = configure(&database, &chain).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    let setup = setup.env("OTEL_BSP_SCHEDULE_DELAY", "50").env("OTEL_TRACES_SAMPLER", "always_on");
    let _service = setup.start().await;
    let taken = collector.until(|taken| taken.spans.iter().any(|span| span.name == "block")).await;
    let block = taken.spans.iter().find(|span| span.name == "block").unwrap();
    assert_eq!(block.attributes["mesh.block.height"], "1");
    let steps = taken.spans.iter().filter(|span| span.parent_id == block.span_id);
    let mut steps: Vec<&str> = steps.map(|span| span.name.as_str()).collect();
    steps.sort_unstable();
    assert_eq!(steps, ["commit", "decode", "fetch"]);
}
