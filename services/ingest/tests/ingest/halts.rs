//! What halts the work: it is named, nothing of it is written, and it ends when the cause is corrected (N9,
//! N10).

use mesh_testbed::{
    Database, eventually,
    scripted_node::{Chain, Version, event, hash, trade},
};
use serde_json::Value;

use crate::{SOON, configure, started, stored, text};

/// A cause of a halt at block 4, the reason and a part of its text.
type Cause = (fn(&Chain), &'static str, &'static str);

fn with_events(chain: &Chain, events: Vec<Value>) {
    chain.change(4, |block| block.end = events);
}

const CAUSES: [Cause; 15] = [
    (
        |chain| with_events(chain, vec![trade(1, "1"), event("mesh.nothing", &[])]),
        "decode",
        "table nothing: there is no such table",
    ),
    (
        |chain| with_events(chain, vec![event("mesh.epochs", &[("id", "1"), ("colour", "red")])]),
        "decode",
        "table epochs, column colour, value \"red\": there is no such column",
    ),
    (
        |chain| with_events(chain, vec![event("mesh.epochs", &[("id", "1"), ("id", "2")])]),
        "decode",
        "table epochs, column id, value \"2\": the column is given twice",
    ),
    (
        |chain| with_events(chain, vec![event("mesh.epochs", &[("block_time", "2026-01-01 00:00:00+00")])]),
        "decode",
        "table epochs, column block_time",
    ),
    (
        |chain| {
            with_events(chain, vec![event("mesh.trades", &[("synthetic_time", "2026-01-01 00:00:05.2+00")])]);
        },
        "decode",
        "table trades, column synthetic_time, value \"2026-01-01 00:00:05.2+00\": the time must be less than a second after",
    ),
    (
        |chain| with_events(chain, vec![order("m1"), order("m2")]),
        "refused",
        "order o has another market or party than before",
    ),
    (
        |chain| with_events(chain, vec![account("a", &[("party_id", "")]), account("b", &[])]),
        "refused",
        "unique constraint \"accounts_order_idx\"",
    ),
    (
        |chain| with_events(chain, vec![trade(1, "1"), trade(2, &"x".repeat(70))]),
        "refused",
        "table trades, column price, value \
         \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…\": invalid input syntax",
    ),
    (
        |chain| with_events(chain, vec![event("mesh.network_parameters", &[("key", "a")])]),
        "refused",
        "table network_parameters, column value: null value in column",
    ),
    (
        |chain| with_events(chain, vec![never_started()]),
        "refused",
        "table epochs, column start_time, value \"0001-01-01 00:00:00+00\": new row for relation \"epochs\" violates check \
         constraint \"epochs_times_check\": a time is outside of 1678 to 2261",
    ),
    (
        |chain| with_events(chain, vec![trade(1, "1"), trade(2, "NaN")]),
        "refused",
        "table trades, column price, value \"NaN\": new row for relation \"trades\" violates check constraint \
         \"trades_numbers_check\": a number is NaN or infinite",
    ),
    (
        |chain| with_events(chain, vec![event("mesh.network_parameters", &[("key", "a\0b")])]),
        "decode",
        "table network_parameters, column key, value \"a\\0b\": PostgreSQL stores no NUL in a text",
    ),
    (|chain| chain.change(4, |block| block.parent = "f".repeat(64)), "forked", "the store's block 3 is 000"),
    (|chain| chain.state.lock().keeps_results = false, "no_results", "discard_abci_responses"),
    (|chain| chain.state.lock().lowest = 6, "pruned", "missing blocks 4-5; import segments"),
];

/// A version of an order in a market.
fn order(market: &str) -> Value {
    let numbers =
        ["side", "price", "size", "remaining", "time_in_force", "type", "status", "version", "batch_id"];
    let mut values: Vec<_> = numbers.map(|name| (name, "1")).into();
    values.extend([("id", "o"), ("market_id", market), ("party_id", "p")]);
    values.extend([("created_at", "2026-01-01 00:00:00+00"), ("post_only", "f"), ("reduce_only", "f")]);
    event("mesh.orders", &values)
}

fn account(id: &str, party: &[(&str, &str)]) -> Value {
    event("mesh.accounts", &[party, &[("id", id), ("asset_id", "a"), ("type", "4")]].concat())
}

/// An epoch with Go's time for "not set".
fn never_started() -> Value {
    let times = ["start_time", "expire_time"].map(|name| (name, "0001-01-01 00:00:00+00"));
    event("mesh.epochs", &[("id", "1"), times[0], times[1]])
}

#[tokio::test]
async fn a_halt_names_its_cause_writes_nothing_and_ends_with_the_cause() {
    futures_util::future::join_all(CAUSES.map(async |(cause, reason, words)| {
        let (_database, chain, service, client) = started(3).await;
        // The blocks appear together with what is wrong with them.
        let hidden = chain.hidden();
        (0..3).for_each(|_| _ = hidden.add(Vec::new()));
        let right = hidden.hidden();
        cause(&hidden);
        std::mem::swap(&mut *chain.state.lock(), &mut *hidden.state.lock());
        let unready = service.await_readiness(503, SOON).await;
        assert!(unready.contains(&format!("halted at block 4: {reason}: ")), "{unready}");
        assert!(unready.contains(words), "{words:?} is not in {unready}");
        assert_eq!(text(&client, "SELECT max(height)::text FROM blocks").await, "3");
        assert_eq!(text(&client, "SELECT (count(*))::text FROM trades").await, "0");
        let metric = format!("mesh_ingest_halted{{reason=\"{reason}\"}} 1");
        let metrics = service.admin("/metrics").await;
        assert!(metrics.text().contains(&metric), "{metric} is not in {}", metrics.text());
        std::mem::swap(&mut *chain.state.lock(), &mut *right.state.lock());
        stored(&client, 6).await;
        service.await_readiness(200, SOON).await;
        assert!(service.log().contains(reason), "{}", service.log());
    }))
    .await;
}

#[tokio::test]
async fn another_chain_halts_and_a_node_that_is_behind_is_waited_for() {
    let (_database, chain, service, client) = started(3).await;
    chain.state.lock().chain_id = "net-2".to_owned();
    let unready = service.await_readiness(503, SOON).await;
    assert!(unready.contains("other_chain: the node's chain is \"net-2\""), "{unready}");
    chain.state.lock().chain_id = "net-1".to_owned();
    service.await_readiness(200, SOON).await;
    let all = chain.state.lock().blocks.clone();
    chain.state.lock().blocks.retain(|height, _| *height < 2);
    let unready = service.await_readiness(503, SOON).await;
    assert!(unready.contains("at block 1, the store at 3"), "{unready}");
    chain.state.lock().blocks = all;
    chain.add(Vec::new());
    stored(&client, 4).await;
    service.await_readiness(200, SOON).await;
}

#[tokio::test]
async fn a_store_that_is_corrected_ends_a_halt() {
    let (_database, chain, service, client) = started(3).await;
    let store = async |hash: &str| {
        let sql = format!(
            "UPDATE blocks SET hash = '{hash}' WHERE height = 3; UPDATE last_block SET hash = '{hash}'"
        );
        client.batch_execute(&sql).await.unwrap();
    };
    store("ff").await;
    chain.add(Vec::new());
    let unready = service.await_readiness(503, SOON).await;
    assert!(unready.contains("forked: it follows"), "{unready}");
    store(&hash(3)).await;
    stored(&client, 4).await;
}

#[tokio::test]
async fn a_node_that_gives_no_blocks_is_not_ready() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    (0..3).for_each(|_| _ = chain.add(Vec::new()));
    let lost = chain.state.lock().blocks.remove(&2).unwrap();
    let service = configure(&database, &chain).start_unready().await;
    let unready = service.await_readiness(503, SOON).await;
    eventually(SOON, &unready, async || {
        let unready = service.admin("/readyz").await;
        unready.text().contains("block 2 was not fetched: the node answers with an error: no block 2")
    })
    .await;
    chain.put(2, lost);
    stored(&database.connect().await, 3).await;
    service.await_readiness(200, SOON).await;
}

#[tokio::test]
async fn a_new_chain_continues_a_store_only_behind_the_hash_that_is_named() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    (0..4).for_each(|_| _ = chain.add(Vec::new()));
    chain.change(3, |block| block.parent = String::new());
    let service = configure(&database, &chain).start_unready().await;
    let client = database.connect().await;
    eventually(SOON, "no halt at block 3", async || {
        service.admin("/readyz").await.text().contains("halted at block 3: forked: it follows no block")
    })
    .await;
    service.stop().await;
    let _service = configure(&database, &chain).env("MESH_INGEST_AFTER_HASH", hash(2)).start().await;
    stored(&client, 4).await;
}

#[tokio::test]
async fn a_skipped_block_is_stored_without_rows() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    chain.add(vec![trade(1, "1")]);
    chain.add(vec![trade(2, "x")]);
    chain.add(vec![trade(3, "3")]);
    let service = configure(&database, &chain).env("MESH_INGEST_SKIP", "2").start().await;
    let client = database.connect().await;
    stored(&client, 3).await;
    assert_eq!(text(&client, "SELECT count(*)::text FROM trades").await, "2");
    assert!(service.log().contains("MESH_INGEST_SKIP"), "{}", service.log());
}
