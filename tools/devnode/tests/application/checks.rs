//! Results of checks, and of the same transactions in a block.

use bytes::Bytes;
use mesh_transaction::SpamRules;

use proto_msgs::v2::ProofOfWork;

use super::fixture::{Fixture, transaction, with_work};
use crate::transactions::rules;

/// Work of no bits.
fn without_work(tid: &str) -> ProofOfWork {
    ProofOfWork { tid: tid.to_owned(), nonce: 0 }
}

#[tokio::test]
async fn a_transaction_is_checked_and_delivered_once() {
    let mut fixture = Fixture::new(rules()).await;
    fixture.block(1, &[]).await;
    let tx = transaction(1, 1, "order");
    // A check can be repeated: the node rechecks its mempool.
    for _ in 0..3 {
        assert_eq!(fixture.check(&tx).await, (0, String::new()));
    }
    let (code, reason) = fixture.check(&with_work(1, "another", without_work("tid of 1 order"))).await;
    assert_eq!((code, reason.as_str()), (89, "proof of work tid already used"));
    assert_eq!(fixture.check(&Bytes::from_static(b"no transaction")).await.0, 60);
    let finalized =
        fixture.finalize(2, &[tx.clone(), Bytes::from_static(b"no transaction"), tx.clone()]).await;
    let codes: Vec<u32> = finalized.tx_results.iter().map(|result| result.code).collect();
    assert_eq!(codes, [0, 60, 51], "it is delivered once, from any proposer");
    fixture.commit().await;
    assert_eq!(fixture.check(&tx).await, (51, "transaction was submitted before".to_owned()));
    let again = fixture.finalize(3, &[tx]).await;
    assert_eq!(again.tx_results[0].code, 51);
}

#[tokio::test]
async fn work_on_a_block_is_good_from_its_proposal_on() {
    let mut fixture = Fixture::new(rules()).await;
    fixture.block(1, &[]).await;
    let (early, late) = (transaction(2, 1, "early"), transaction(2, 1, "late"));
    assert_eq!(fixture.check(&early).await.0, 89);
    fixture.propose(2).await;
    // The node's status may show it from now on.
    assert_eq!(fixture.check(&early).await.0, 0);
    fixture.block(2, &[]).await;
    assert_eq!(fixture.check(&late).await.0, 0);
    let finalized = fixture.finalize(3, &[early, late]).await;
    assert!(finalized.tx_results.iter().all(|result| result.code == 0), "{finalized:?}");
}

#[tokio::test]
async fn what_only_was_checked_counts_until_the_next_block() {
    let mut fixture = Fixture::new(SpamRules { difficulty: 0, ..rules() }).await;
    fixture.block(1, &[]).await;
    let [checked, sent] = ["asked", "sent"].map(|input| with_work(1, input, without_work("one tid")));
    assert_eq!(fixture.check(&checked).await.0, 0);
    assert_eq!(fixture.check(&sent).await, (89, "proof of work tid already used".to_owned()));
    fixture.block(2, &[]).await;
    assert_eq!(fixture.check(&sent).await.0, 0);
}

#[tokio::test]
async fn a_party_that_sends_too_many_is_barred_and_stays_so_at_the_next_block() {
    let mut fixture = Fixture::new(SpamRules { tx_per_block: 1, ..rules() }).await;
    fixture.block(1, &[]).await;
    let [first, second, third] = ["1", "2", "3"].map(|input| transaction(1, 1, input));
    assert_eq!(fixture.check(&first).await.0, 0);
    assert!(fixture.check(&second).await.1.contains("party is barred"));
    fixture.block(2, &[first]).await;
    assert!(fixture.check(&third).await.1.contains("barred for 29 more seconds"));
    assert_eq!(fixture.check(&transaction(1, 2, "of another")).await.0, 0);
}
