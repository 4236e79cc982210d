//! Crashes: what was kept is there, what was not is decided again, and the hash is the same.

use mesh_devnode::{Application, Checks};
use mesh_transaction::{ALGORITHM, Network};
use tendermint_proto::v0_38::abci::response::Value as Said;

use super::stage::{Stage, rules, transaction};

#[tokio::test]
async fn a_crash_at_any_step_leaves_the_same_chain() {
    // Two searches may find two nonces: each transaction is made once.
    let txs = |before: u64, input| vec![transaction(before, 1, input), transaction(before, 2, input)];
    let blocks = [vec![], txs(1, "a"), txs(2, "b"), txs(3, "c")];
    let mut undisturbed = Stage::set(rules()).await;
    let mut expected = Vec::new();
    for (height, txs) in (1..).zip(&blocks) {
        expected.push(undisturbed.block(height, txs).await);
    }
    assert_eq!(expected.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "each block has its own");

    let mut stage = Stage::set(rules()).await;
    assert_eq!(stage.info().await.0, 0);
    for (height, (txs, expected)) in (1_u64..).zip(blocks.iter().zip(&expected)) {
        // Decided and not kept: it is asked for again.
        let first = stage.finalize(height, txs).await;
        stage = stage.crash().await;
        assert_eq!(stage.info().await.0.unsigned_abs(), height - 1);
        assert_eq!(stage.finalize(height, txs).await, first);
        assert!(first.tx_results.iter().all(|result| result.code == 0), "{first:?}");
        assert_eq!(first.app_hash, expected);
        assert!(matches!(stage.commit().await, Said::Commit(_)));
        // Kept: nobody asks for it again.
        stage = stage.crash().await;
        assert_eq!(stage.info().await, (height.cast_signed(), expected.clone()));
    }
    assert_eq!(stage.check(&blocks[2][0]).await.0, 51, "what was delivered in an earlier life is a replay");
    for height in 1..=4 {
        assert_eq!(stage.application.block(height).await.unwrap().unwrap().height, height);
    }
    assert_eq!(stage.application.block(5).await.unwrap(), None);
}

#[tokio::test]
async fn a_block_that_was_torn_is_asked_for_again() {
    let mut stage = Stage::set(rules()).await;
    stage.block(7, &[]).await;
    let length = std::fs::metadata(stage.file()).unwrap().len();
    // Another search may find another nonce.
    let txs = [transaction(7, 1, "a")];
    let hash = stage.block(8, &txs).await;
    let file = std::fs::OpenOptions::new().write(true).open(stage.file()).unwrap();
    file.set_len(length + 9).unwrap();
    let mut stage = stage.crash().await;
    assert_eq!(stage.info().await.0, 7);
    assert_eq!(stage.application.first(), 7);
    assert_eq!(stage.block(8, &txs).await, hash);
}

#[tokio::test]
async fn what_cannot_be_done_is_told_and_changes_nothing() {
    let mut stage = Stage::set(rules()).await;
    assert!(matches!(stage.init("net-1").await, Said::InitChain(_)));
    let refused = |said: Said, what: &str| match said {
        Said::Exception(exception) => assert!(exception.error.contains(what), "{exception:?}"),
        other => panic!("{other:?}"),
    };
    refused(stage.init("net-2").await, "net-2");
    let mut stage = stage.crash().await;
    refused(stage.commit().await, "no block to commit");
    let mut stage = stage.crash().await;
    stage.block(3, &[]).await;
    refused(stage.try_finalize(5, &[]).await, "block 5 does not follow block 3");
    let mut stage = stage.crash().await;
    stage.block(4, &[]).await;
    assert_eq!(stage.info().await.0, 4);
}

#[tokio::test]
async fn the_file_of_another_chain_is_not_taken() {
    let mut stage = Stage::set(rules()).await;
    stage.block(1, &[]).await;
    let (folder, file) = (stage.end().await, "blocks");
    let network =
        Network { chain_id: "net-2".into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() };
    let opened = Application::open(network, &folder.path().join(file), Checks::All, rules()).await;
    assert!(opened.unwrap_err().to_string().contains("another chain"));
}
