//! The demo network's blocks: their results, and the state after restarts.

use bytes::Bytes;
use mesh_demo::{Plan, Simulator};
use mesh_devnode::Base;
use mesh_transaction::{Block, SpamRules};
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::transactions::{CHAIN, rules};

/// A demo network with blocks up to this height of a history of 100, as a node continues it.
pub(crate) fn base(height: u64, rules: SpamRules) -> Base {
    let plan = Plan { blocks: 100, markets: 1, parties: 8, ..Plan::default() };
    let mut simulator = Simulator::new(plan).unwrap();
    (0..height).for_each(|_| drop(simulator.next_history_block()));
    let time = std::time::Duration::from_micros(simulator.time().0.unsigned_abs());
    let newest = Block { height, hash: simulator.hash().to_owned(), time };
    Base { newest: Some(newest), demo: Some(simulator), ..Base::empty(CHAIN, rules) }
}

/// The results of a transaction's block, and the result of the transaction there.
async fn executed(fixture: &Fixture, tx: &Bytes) -> (Value, Value) {
    assert_eq!(fixture.send("broadcast_tx_sync", tx).await["code"], 0);
    let height = fixture.blocks(1).await;
    let results =
        fixture.call("block_results", json!({"height": height.to_string()})).await["result"].clone();
    let hash = mesh_transaction::TxHash::of(tx);
    let of_tx = fixture.get(&format!("/tx?hash=0x{hash}")).await.1["result"]["tx_result"].clone();
    assert_eq!(results["txs_results"], json!([of_tx]));
    (results, of_tx)
}

/// The types of events, sorted and without repetition.
fn types(events: &Value) -> Vec<&str> {
    let mut types: Vec<_> =
        events.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.sort_unstable();
    types.dedup();
    types
}

fn attribute<'a>(event: &'a Value, key: &str) -> &'a str {
    let attributes = event["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.unwrap_or_else(|| panic!("no {key} in {event}"))["value"].as_str().unwrap()
}

pub(crate) const FAUCET: &str = r#"{"faucet":{"asset":"VOTE"}}"#;

fn transfer(amount: &str) -> String {
    format!(r#"{{"transfer":{{"to":"{}","asset":"VOTE","amount":"{amount}"}}}}"#, "ab".repeat(32))
}

#[tokio::test]
async fn blocks_above_the_base_have_events_and_survive_kills() {
    // Block 100 stores the network's state, so that both ways to rebuild it are taken.
    let fixture = Fixture::after(base(98, rules()), |_| {}).await;
    let base_hash = fixture.node.chain().newest().unwrap().hash;
    let (first, of_tx) = executed(&fixture, &fixture.transaction(1, FAUCET)).await;
    assert_eq!(types(&of_tx["events"]), ["mesh.accounts", "mesh.balances", "mesh.deposits", "mesh.ledger"]);
    let of_block = types(&first["finalize_block_events"]);
    assert!(of_block.contains(&"mesh.orders") && !of_block.contains(&"mesh.blocks"), "{of_block:?}");
    let block = fixture.call("block", json!({"height": "99"})).await["result"]["block"].clone();
    assert_eq!(block["header"]["last_block_id"]["hash"], base_hash.to_uppercase());
    // Times that rows state are computed from the header's.
    let time = block["header"]["time"].as_str().unwrap().replace('T', " ").replace('Z', "+00");
    let ledger = of_tx["events"].as_array().unwrap().iter().find(|event| event["type"] == "mesh.ledger");
    assert_eq!(attribute(ledger.unwrap(), "ledger_entry_time"), time);
    let below = fixture.get("/block_results?height=98").await.1["error"]["data"].clone();
    assert_eq!(below, "height 98 is not available, lowest height is 99");

    let fixture = fixture.restart().await;
    let again = fixture.call("block_results", json!({"height": "99"})).await["result"].clone();
    assert_eq!(again, first);
    let (_, of_tx) = executed(&fixture, &fixture.transaction(1, &transfer("7"))).await;
    assert_eq!((&of_tx["code"], fixture.blocks(1).await), (&json!(0), 101));
    let fixture = fixture.restart().await;
    for (input, reason) in [
        (format!("{FAUCET} "), "the faucet credits each key once per asset"),
        (
            transfer("1000000000000000000000"),
            "not enough balance: 999999999999999999993 of 1000000000000000000000",
        ),
    ] {
        let tx = fixture.transaction(1, &input);
        let (_, of_tx) = executed(&fixture, &tx).await;
        let found = (&of_tx["code"], &of_tx["data"], &of_tx["log"], &of_tx["events"]);
        assert_eq!(found, (&json!(51), &Value::Null, &json!(reason), &json!([])));
        // It has failed and cannot be sent again.
        assert_eq!(fixture.send("broadcast_tx_sync", &tx).await["code"], 51);
    }
    // Its proof of work is used although its execution failed, also after a restart.
    let fixture = fixture.restart().await;
    let again = || fixture.transaction(1, &transfer("1000000000000000000000"));
    let mut other = again();
    // By chance the same work is good for two blocks, and the transaction is the same.
    while fixture.send("check_tx", &other).await["code"] == 51 {
        fixture.blocks(1).await;
        other = again();
    }
    assert_eq!(fixture.send("check_tx", &other).await["code"], 89);
}
