//! Several relays answer as one about a transaction, also while one of them is frozen, killed, stopped, or new.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use mesh_problem::Code;
use mesh_testbed::{NodeKind, Signal, eventually, on_both_nodes};
use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};

use serde_json::json;

use crate::fixture::{Fixture, SOON, Setup, already};

on_both_nodes!(
    all_relays_report_what_one_of_them_knows, what_the_mempool_has_is_pending,
    no_relay_falls_behind_a_reported_block,
);

fn setup(kind: NodeKind, relays: usize) -> Setup {
    Setup { relays, ..Setup::new(kind) }
}

/// The states that the relays report, asked often enough to reach each of them.
async fn reported(fixture: &Fixture, tx: &[u8]) -> BTreeSet<i32> {
    let mut reported = BTreeSet::new();
    for _ in 0..20 {
        reported.insert(fixture.status(tx).await.into());
    }
    reported
}

fn only(status: Status) -> BTreeSet<i32> {
    BTreeSet::from([status.into()])
}

async fn all_relays_report_what_one_of_them_knows(kind: NodeKind) {
    let mut fixture = Fixture::start(setup(kind, 3)).await;
    let (good, bad) = (fixture.transaction("good").await, fixture.refused("bad").await);
    assert!(fixture.sync(&good).await.unwrap().success);
    assert_eq!(fixture.sync(&bad).await.unwrap().code, 89);
    assert_eq!(reported(&fixture, &good).await, only(Status::Pending));
    assert_eq!(reported(&fixture, &bad).await, only(Status::Refused));
    // Each answers a repeat like the first one.
    let broadcasts = fixture.broadcasts(&bad);
    for _ in 0..9 {
        assert_eq!(fixture.sync(&bad).await.unwrap().code, 89);
    }
    assert_eq!(fixture.broadcasts(&bad), broadcasts);
    // One after the other is replaced by a new one.
    for _ in 0..3 {
        fixture.relays.remove(0).kill().await;
        fixture.start_relay(&[]).await;
        assert_eq!(reported(&fixture, &good).await, only(Status::Pending));
        assert_eq!(reported(&fixture, &bad).await, only(Status::Refused));
    }
    fixture.relays[0].stop().await;
    assert_eq!(reported(&fixture, &bad).await, only(Status::Refused));
}

/// Transactions that did not come through a relay.
async fn what_the_mempool_has_is_pending(kind: NodeKind) {
    let fixture = Fixture::start(setup(kind, 2)).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(reported(&fixture, &tx).await, only(Status::Unknown));
    fixture.node.call("broadcast_tx_sync", json!({"tx": STANDARD.encode(&tx)})).await;
    let is_pending = async || fixture.status(&tx).await == Status::Pending;
    eventually(SOON, "the mempool is not seen", is_pending).await;
    assert_eq!(reported(&fixture, &tx).await, only(Status::Pending));
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
}

async fn no_relay_falls_behind_a_reported_block(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup { relays: 2, ..Setup::with_blocks(kind) }).await;
    fixture.start_blocks();
    // CometBFT writes its index after the answer to a commit.
    for number in 0..20 {
        let tx = fixture.transaction(&number.to_string()).await;
        let height = fixture.submit(&tx, TypeCommit).await.unwrap().height;
        for _ in 0..6 {
            let reply = fixture.get_transaction(&tx).await;
            assert_eq!((reply.status(), reply.height), (Status::Included, height));
        }
    }
}

/// Each transaction is read once, so only one relay has seen its block.
#[tokio::test]
async fn a_reported_block_is_known_when_its_relay_and_the_node_end() {
    let mut fixture = Fixture::start(setup(NodeKind::Development, 2)).await;
    let txs = [fixture.transaction("one").await, fixture.transaction("two").await];
    for tx in &txs {
        assert!(fixture.sync(tx).await.unwrap().success);
    }
    fixture.node.block().await;
    for tx in &txs {
        assert_eq!(fixture.status(tx).await, Status::Included);
        // Either relay answers a repeat with the hash, also the one that knows the transaction from its block.
        for _ in 0..6 {
            let reply = fixture.sync(tx).await.unwrap();
            assert_eq!((reply.success, reply.tx_hash), (true, TxHash::of(tx).to_string()));
        }
    }
    fixture.node.kill().await;
    fixture.relays.remove(0).kill().await;
    for tx in &txs {
        assert_eq!(reported(&fixture, tx).await, only(Status::Included));
    }
}

#[tokio::test]
async fn a_relay_that_was_frozen_knows_a_block_that_a_new_one_reported() {
    let mut fixture = Fixture::start(setup(NodeKind::Development, 1)).await;
    let tx = fixture.transaction("known to the first").await;
    assert!(fixture.sync(&tx).await.unwrap().success);
    fixture.relays[0].signal(Signal::STOP);
    fixture.start_relay(&[]).await;
    fixture.node.block().await;
    assert_eq!(fixture.status(&tx).await, Status::Included);
    fixture.node.kill().await;
    fixture.relays.remove(1).kill().await;
    fixture.relays[0].signal(Signal::CONT);
    let is_known = async || {
        let reply = fixture.read_transaction(&tx).await;
        reply.is_ok_and(|reply| {
            assert_eq!(reply.status(), Status::Included);
            true
        })
    };
    eventually(SOON, "the relay does not answer", is_known).await;
}

/// The development node alone: its mempool can be lost.
#[tokio::test]
async fn an_unknown_transaction_is_not_reported_while_a_relay_that_may_know_it_is_frozen() {
    let mut fixture = Fixture::start(setup(NodeKind::Development, 2)).await;
    let (known, never) = (fixture.transaction("known").await, fixture.transaction("never").await);
    assert!(fixture.sync(&known).await.unwrap().success);
    fixture.restart_node().await;
    fixture.relays[0].signal(Signal::STOP);
    let is_refused = async || match fixture.read_transaction(&never).await {
        Ok(reply) => {
            assert_eq!(reply.status(), Status::Unknown);
            false
        }
        Err(problem) => problem.code == Code::Unavailable && problem.number() == 90_001,
    };
    eventually(SOON, "the frozen relay is not missed", is_refused).await;
    for _ in 0..10 {
        assert_eq!(fixture.status(&known).await, Status::Pending);
        assert!(fixture.read_transaction(&never).await.is_err());
    }
    // A new relay learns its name from the other.
    fixture.start_relay(&[]).await;
    fixture.relays.remove(1).kill().await;
    for _ in 0..10 {
        assert!(fixture.read_transaction(&never).await.is_err());
    }
    // It may have reported a block, and neither the other relay nor the node can tell.
    fixture.node.kill().await;
    assert_eq!(fixture.read_transaction(&known).await.unwrap_err().code, Code::Unavailable);
    fixture.node.restart().await;
    fixture.relays[0].signal(Signal::CONT);
    let is_unknown =
        async || fixture.read_transaction(&never).await.is_ok_and(|reply| reply.status() == Status::Unknown);
    eventually(SOON, "the relay does not answer again", is_unknown).await;
    // For a moment after a node refused a connection, a relay does not ask it again.
    let is_read_by_all = async || {
        let reads = (0..20).map(|_| fixture.read_transaction(&known));
        join_all(reads).await.iter().all(Result::is_ok)
    };
    eventually(SOON, "a relay does not ask the node again", is_read_by_all).await;
    assert_eq!(reported(&fixture, &known).await, only(Status::Pending));
    // The relay does not wait for a stopped relay.
    fixture.relays[0].kill().await;
    tokio::time::timeout(Duration::from_secs(5), async {
        eventually(SOON, "the relay is still waited for", is_unknown).await;
    })
    .await
    .unwrap();
}

/// The development node alone: its mempool can be lost.
#[tokio::test]
async fn a_new_relay_misses_one_that_was_frozen_before() {
    let mut fixture = Fixture::start(setup(NodeKind::Development, 1)).await;
    let known = fixture.transaction("known").await;
    assert!(fixture.sync(&known).await.unwrap().success);
    fixture.restart_node().await;
    fixture.relays[0].signal(Signal::STOP);
    fixture.start_relay(&[]).await;
    for _ in 0..10 {
        assert_eq!(fixture.read_transaction(&known).await.unwrap_err().number(), 90_001);
    }
    fixture.relays[0].signal(Signal::CONT);
    let is_known = async || fixture.read_transaction(&known).await.is_ok();
    eventually(SOON, "the frozen relay is still missed", is_known).await;
    assert_eq!(reported(&fixture, &known).await, only(Status::Pending));
}

/// The development node alone: its mempool can be lost.
#[tokio::test]
async fn what_one_relay_saw_in_the_mempool_is_pending_when_it_and_the_node_end() {
    let mut fixture = Fixture::start(setup(NodeKind::Development, 2)).await;
    let tx = fixture.transaction("not through a relay").await;
    fixture.node.call("broadcast_tx_sync", json!({"tx": STANDARD.encode(&tx)})).await;
    fixture.relays[1].signal(Signal::STOP);
    let is_pending =
        async || fixture.read_transaction(&tx).await.is_ok_and(|reply| reply.status() == Status::Pending);
    eventually(SOON, "the mempool is not seen", is_pending).await;
    fixture.relays[1].signal(Signal::CONT);
    fixture.node.kill().await;
    fixture.node.restart().await;
    for relay in &fixture.relays {
        relay.await_readiness(200, SOON).await;
    }
    // One that starts learns it, too.
    for _ in 0..2 {
        fixture.relays.remove(0).kill().await;
        // The relay that was frozen may skip the node for a second, and the one that was killed may have seen a block: 503.
        let is_read = async || fixture.read_transaction(&tx).await.is_ok();
        eventually(SOON, "the node is skipped", is_read).await;
        assert_eq!(reported(&fixture, &tx).await, only(Status::Pending));
        fixture.start_relay(&[]).await;
    }
    assert_eq!(reported(&fixture, &tx).await, only(Status::Pending));
}
