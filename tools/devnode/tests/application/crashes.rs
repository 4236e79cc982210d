//! Crashes: committed blocks are still there, others are finalized again, and the app hash is the same.

use mesh_transaction::SpamRules;
use tendermint_proto::v0_38::abci::response::Value as ResponseValue;

use super::fixture::{Fixture, hash_of, transaction, transaction_of};
use crate::{
    node::demo::{FAUCET, base},
    transactions::rules,
};

#[tokio::test]
async fn a_crash_at_any_step_leaves_the_same_chain() {
    // Two searches may find two nonces: each transaction is made once.
    let txs = |before: u64, input| vec![transaction(before, 1, input), transaction(before, 2, input)];
    let blocks = [vec![], txs(1, "a"), txs(2, "b"), txs(3, "c")];
    let mut undisturbed = Fixture::new(rules()).await;
    let mut expected = Vec::new();
    for (height, txs) in (1..).zip(&blocks) {
        expected.push(undisturbed.block(height, txs).await);
    }
    assert_eq!(expected.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "each block has its own");

    let mut fixture = Fixture::new(rules()).await;
    assert_eq!(fixture.info().await.0, 0);
    for (height, (txs, expected)) in (1_u64..).zip(blocks.iter().zip(&expected)) {
        // Finalized and not committed: the node repeats it.
        let first = fixture.finalize(height, txs).await;
        fixture = fixture.crash().await;
        assert_eq!(fixture.info().await.0.unsigned_abs(), height - 1);
        assert_eq!(fixture.finalize(height, txs).await, first);
        assert!(first.tx_results.iter().all(|result| result.code == 0), "{first:?}");
        assert_eq!(first.app_hash, expected);
        assert!(matches!(fixture.commit().await, ResponseValue::Commit(_)));
        // Committed: the node does not repeat it.
        fixture = fixture.crash().await;
        assert_eq!(fixture.info().await, (height.cast_signed(), expected.clone()));
    }
    assert_eq!(fixture.check(&blocks[2][0]).await.0, 51, "what was delivered in an earlier life is a replay");
    // Long after its work has left the window it still is.
    for height in 5..12 {
        fixture.block(height, &[]).await;
    }
    assert_eq!(fixture.check(&blocks[2][0]).await.0, 51);
}

fn refused(response: ResponseValue, what: &str) {
    match response {
        ResponseValue::Exception(exception) => assert!(exception.error.contains(what), "{exception:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_impossible_request_is_an_exception_and_changes_nothing() {
    let mut fixture = Fixture::new(rules()).await;
    assert!(matches!(fixture.init("net-1").await, ResponseValue::InitChain(_)));
    refused(fixture.init("net-2").await, "net-2");
    let mut fixture = fixture.crash().await;
    refused(fixture.commit().await, "no block to commit");
    let mut fixture = fixture.crash().await;
    fixture.block(1, &[]).await;
    refused(fixture.try_finalize(3, &[]).await, "block 3 does not follow block 1");
    let mut fixture = fixture.crash().await;
    fixture.block(2, &[]).await;
    assert_eq!(fixture.info().await.0, 2);
}

#[tokio::test]
async fn blocks_of_the_demo_network_are_the_same_after_a_crash_and_continue_the_base() {
    // Block 57 of this history sets numberOfTxPerBlock to 2, block 100 stores the network's state.
    for first in [57, 99] {
        // Work of so many bits is not valid for another block by accident.
        let transaction = |height, party, input: &str| transaction_of(12, height, party, input);
        let mut base = base(first - 1, SpamRules { difficulty: 12, ..rules() });
        base.newest.as_mut().unwrap().hash = hex::encode(hash_of(first - 1));
        let mut fixture = Fixture::after(&base).await;
        assert_eq!(fixture.info().await.0, 0, "CometBFT begins the chain");
        refused(fixture.try_finalize(1, &[]).await, &format!("block 1 does not follow block {}", first - 1));
        let mut fixture = fixture.crash().await;
        let txs = [(1, FAUCET), (1, "other"), (2, FAUCET)];
        let txs = txs.map(|(party, input)| transaction(first - 1, party, input));
        let finalized = fixture.finalize(first, &txs).await;
        assert_eq!(finalized, fixture.finalize(first, &txs).await, "the node repeats it");
        let events: Vec<_> = finalized.tx_results.iter().map(|result| result.events.len()).collect();
        assert_eq!(events, [4, 0, 5]);
        assert!(!finalized.events.is_empty());
        let mut fixture = fixture.crash().await;
        assert_eq!(fixture.finalize(first, &txs).await, finalized);
        fixture.commit().await;
        let mut undisturbed = Fixture::after(&base).await;
        undisturbed.block(first, &txs).await;
        let mut fixture = fixture.crash().await;
        let more = [1, 2].map(|party| transaction(first, party, &format!("{FAUCET} ")));
        let next = fixture.finalize(first + 1, &more).await;
        assert_eq!(next, undisturbed.finalize(first + 1, &more).await);
        assert!(next.tx_results.iter().all(|result| result.code == 51 && result.log.contains("once per")));
        let codes = ["1", "2", "3"].map(|input| transaction(first, 3, input));
        let mut found = Vec::new();
        for tx in &codes {
            found.push(fixture.check(tx).await.0);
        }
        assert_eq!(found, if first == 57 { [0, 0, 89] } else { [0, 0, 0] });
        // The second block's state is stored, or executed again.
        fixture.commit().await;
        undisturbed.commit().await;
        let mut fixture = fixture.crash().await;
        assert_eq!(fixture.finalize(first + 2, &[]).await, undisturbed.finalize(first + 2, &[]).await);
    }
}
