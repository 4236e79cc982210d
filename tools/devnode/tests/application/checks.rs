//! What a check says, and what a block makes of it.

use bytes::Bytes;
use mesh_transaction::SpamRules;

use super::stage::{Stage, rules, transaction, with_work};

#[tokio::test]
async fn a_transaction_is_checked_delivered_and_no_more_taken() {
    let mut stage = Stage::set(rules()).await;
    stage.block(1, &[]).await;
    let tx = transaction(1, 1, "order");
    // As often as anybody likes: the node asks again what waits.
    for _ in 0..3 {
        assert_eq!(stage.check(&tx).await, (0, String::new()));
    }
    let (code, reason) = stage.check(&with_work(1, "another", "tid of 1 order".into(), 0)).await;
    assert_eq!((code, reason.as_str()), (89, "proof of work tid already used"));
    assert_eq!(stage.check(&Bytes::from_static(b"no transaction")).await.0, 60);
    let finalized = stage.finalize(2, &[tx.clone(), Bytes::from_static(b"no transaction"), tx.clone()]).await;
    let codes: Vec<u32> = finalized.tx_results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [0, 60, 51], "whoever proposes it, it is delivered once");
    stage.commit().await;
    assert_eq!(stage.check(&tx).await, (51, "transaction was submitted before".to_owned()));
    let again = stage.finalize(3, &[tx]).await;
    assert_eq!(again.tx_results[0].code, 51);
}

#[tokio::test]
async fn work_on_a_block_is_good_from_its_proposal_on() {
    let mut stage = Stage::set(rules()).await;
    stage.block(1, &[]).await;
    let (early, late) = (transaction(2, 1, "early"), transaction(2, 1, "late"));
    assert_eq!(stage.check(&early).await.0, 89);
    stage.propose(2).await;
    // The node's status may tell of it from now on.
    assert_eq!(stage.check(&early).await.0, 0);
    stage.block(2, &[]).await;
    assert_eq!(stage.check(&late).await.0, 0);
    let finalized = stage.finalize(3, &[early, late]).await;
    assert!(finalized.tx_results.iter().all(|result| result.code == 0), "{finalized:?}");
}

#[tokio::test]
async fn what_only_was_checked_counts_until_the_next_block() {
    let mut stage = Stage::set(SpamRules { difficulty: 0, ..rules() }).await;
    stage.block(1, &[]).await;
    let [asked, sent] = ["asked", "sent"].map(|input| with_work(1, input, "one tid".to_owned(), 0));
    assert_eq!(stage.check(&asked).await.0, 0);
    assert_eq!(stage.check(&sent).await, (89, "proof of work tid already used".to_owned()));
    stage.block(2, &[]).await;
    assert_eq!(stage.check(&sent).await.0, 0);
}

#[tokio::test]
async fn a_party_that_sends_too_many_is_barred_and_stays_so_at_the_next_block() {
    let mut stage = Stage::set(SpamRules { tx_per_block: 1, ..rules() }).await;
    stage.block(1, &[]).await;
    let [first, second, third] = ["1", "2", "3"].map(|input| transaction(1, 1, input));
    assert_eq!(stage.check(&first).await.0, 0);
    assert!(stage.check(&second).await.1.contains("party is barred"));
    stage.block(2, &[first]).await;
    assert!(stage.check(&third).await.1.contains("barred for 29 more seconds"));
    assert_eq!(stage.check(&transaction(1, 2, "of another")).await.0, 0);
}

#[tokio::test]
async fn rules_that_the_store_has_since_a_block_hold_for_work_on_it() {
    let mut stage = Stage::set(SpamRules { difficulty: 30, ..rules() }).await;
    stage.block(1, &[]).await;
    let tx = transaction(1, 1, "order");
    assert_eq!(stage.check(&tx).await.0, 89);
    stage.application.amend(1, rules());
    assert_eq!(stage.check(&tx).await.0, 0);
    let finalized = stage.finalize(2, &[tx]).await;
    assert_eq!(finalized.tx_results[0].code, 0);
}
