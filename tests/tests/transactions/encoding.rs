//! A transaction's hash is that of its protobuf encoding by an independent encoder, for every spelling of its
//! JSON, and the one that the node reports.

use std::{process::Command, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt, stream};
use mesh_testbed::{DevNode, NodeKind, on_both_nodes};
use mesh_tests::{env_number, say};
use mesh_transaction::{TxHash, encode};
use proto_msgs::{
    Contract,
    v2::{ProofOfWork, Signature, Transaction, transaction::From as Sender},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};

use crate::transactions::Environment;

on_both_nodes!(the_encoding_is_that_of_pythons_protobuf, the_hash_is_the_nodes_own);

/// Number of transactions; `MESH_TEST_ENCODINGS` sets another one.
fn count() -> usize {
    env_number("MESH_TEST_ENCODINGS", 300)
}

/// Who encodes by another table signs for one hash and looks for another.
#[test]
fn the_documented_table_of_the_encoding_has_the_contracts_numbers() {
    let page = include_str!("../../../docs/transactions.md");
    let (_, table) = page.split_once("| field | number | type |").expect("the page has the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<(&str, u32)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            (cells[1], cells[2].parse().unwrap())
        })
        .collect();
    let message = Contract::get().pool().get_message_by_name("api.v2.Transaction").unwrap();
    let fields = message.fields().filter(|field| field.name() != "address");
    let fields: Vec<(String, u32)> = fields.map(|field| (field.name().to_owned(), field.number())).collect();
    assert_eq!(rows, fields.iter().map(|(name, number)| (&**name, *number)).collect::<Vec<_>>());
}

async fn the_encoding_is_that_of_pythons_protobuf(kind: NodeKind) {
    let count = count();
    let made = Command::new("python3")
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transactions/encode.py"), &count.to_string(), "7"])
        .output();
    let cases = match made {
        Ok(made) if made.status.success() => String::from_utf8(made.stdout).unwrap(),
        Ok(_) => {
            say("skipped: the comparison with Python's protobuf, which python3 does not have");
            return;
        }
        Err(error) => {
            say(&format!("skipped: the comparison with Python's protobuf ({error})"));
            return;
        }
    };
    let node = DevNode::configure().without_checks().every(Duration::from_millis(100));
    let environment = &Environment::start_with(kind, node).await;
    let wrong: Vec<String> = stream::iter(cases.lines())
        .map(|case| async move {
            let (body, hash) = case.rsplit_once('\t').unwrap();
            let answer = environment.send("/transaction", body.to_owned()).await;
            let reported_hash = serde_json::from_slice::<Value>(&answer.body).unwrap()["txHash"].clone();
            if reported_hash == hash {
                // The node finds it by the same hash.
                environment.node.included(&hash.parse().unwrap()).await;
            }
            (reported_hash != hash).then(|| format!("{body}: {hash} wanted, {answer:?}"))
        })
        .buffer_unordered(16)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert_eq!(cases.lines().count(), count);
    assert!(wrong.is_empty(), "{} of {count}, first {}", wrong.len(), wrong[0]);
}

async fn the_hash_is_the_nodes_own(kind: NodeKind) {
    let node = DevNode::configure().without_checks().every(Duration::from_millis(100)).start_as(kind).await;
    let mut random = SmallRng::seed_from_u64(11);
    let txs: Vec<_> = (0..count()).map(|turn| encode(&any(&mut random, turn))).collect();
    let (node, all) = (&node, txs.len());
    let same = stream::iter(txs)
        .map(|tx| async move {
            let answer = node.call("broadcast_tx_sync", json!({"tx": STANDARD.encode(&tx)})).await;
            let is_same = answer["result"]["hash"] == json!(TxHash::of(&tx).to_string());
            assert!(is_same, "{} {answer}", hex_of(&tx));
        })
        .buffer_unordered(16)
        .count();
    assert_eq!(same.await, all);
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A transaction with random content; the turn makes it unique.
fn any(random: &mut SmallRng, turn: usize) -> Transaction {
    let text = |random: &mut SmallRng| -> String {
        let length = random.random_range(0..40);
        (0..length).map(|_| random.random::<char>()).collect()
    };
    let mut input_data = turn.to_be_bytes().to_vec();
    input_data.extend((0..random.random_range(0..300)).map(|_| random.random::<u8>()));
    Transaction {
        input_data: input_data.into(),
        signature: random.random_bool(0.8).then(|| Signature {
            value: text(random),
            algo: text(random),
            version: random.random_range(0..4),
        }),
        version: random.random_range(0..4),
        from: match random.random_range(0..3) {
            0 => None,
            1 => Some(Sender::Address(text(random))),
            _ => Some(Sender::PubKey(text(random))),
        },
        pow: random.random_bool(0.8).then(|| ProofOfWork { tid: text(random), nonce: random.random() }),
    }
}
