//! Crashes: committed blocks are still there, others are finalized again, and the app hash is the same.

use mesh_devnode::{Application, Checks};
use mesh_transaction::{ALGORITHM, Network};
use tendermint_proto::v0_38::abci::response::Value as ResponseValue;

use super::fixture::{Fixture, rules, transaction};

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
    for height in 1..=4 {
        assert_eq!(fixture.application.block(height).await.unwrap().unwrap().height, height);
    }
    assert_eq!(fixture.application.block(5).await.unwrap(), None);
}

#[tokio::test]
async fn an_incomplete_block_is_requested_again() {
    let mut fixture = Fixture::new(rules()).await;
    fixture.block(7, &[]).await;
    let length = std::fs::metadata(fixture.file()).unwrap().len();
    // Another search may find another nonce.
    let txs = [transaction(7, 1, "a")];
    let hash = fixture.block(8, &txs).await;
    let file = std::fs::OpenOptions::new().write(true).open(fixture.file()).unwrap();
    file.set_len(length + 9).unwrap();
    let mut fixture = fixture.crash().await;
    assert_eq!(fixture.info().await.0, 7);
    assert_eq!(fixture.application.first(), 7);
    assert_eq!(fixture.block(8, &txs).await, hash);
}

#[tokio::test]
async fn an_impossible_request_is_an_exception_and_changes_nothing() {
    let mut fixture = Fixture::new(rules()).await;
    assert!(matches!(fixture.init("net-1").await, ResponseValue::InitChain(_)));
    let refused = |response: ResponseValue, what: &str| match response {
        ResponseValue::Exception(exception) => assert!(exception.error.contains(what), "{exception:?}"),
        other => panic!("{other:?}"),
    };
    refused(fixture.init("net-2").await, "net-2");
    let mut fixture = fixture.crash().await;
    refused(fixture.commit().await, "no block to commit");
    let mut fixture = fixture.crash().await;
    fixture.block(3, &[]).await;
    refused(fixture.try_finalize(5, &[]).await, "block 5 does not follow block 3");
    let mut fixture = fixture.crash().await;
    fixture.block(4, &[]).await;
    assert_eq!(fixture.info().await.0, 4);
}

#[tokio::test]
async fn the_file_of_another_chain_is_not_taken() {
    let mut fixture = Fixture::new(rules()).await;
    fixture.block(1, &[]).await;
    let (folder, file) = (fixture.end().await, "blocks");
    let network =
        Network { chain_id: "net-2".into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() };
    let opened = Application::open(network, &folder.path().join(file), Checks::All, rules()).await;
    assert!(opened.unwrap_err().to_string().contains("another chain"));
}
