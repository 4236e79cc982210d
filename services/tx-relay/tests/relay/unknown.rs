//! Submissions without an answer of the node: the relay reports an unknown outcome, and finds out
//! later.

use std::time::Duration;

use mesh_devnode::Limits;
use mesh_problem::{Code, Problem};
use mesh_testbed::{NodeKind, eventually, on_both_nodes};
use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};
use tokio::time::timeout;

use crate::fixture::{Fixture, SOON, Setup, accepted, already};

/// Asserts that the outcome is reported as unknown, with the hash of the transaction.
fn assert_unknown(problem: &Problem, tx: &[u8]) {
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "{problem}");
    assert_eq!(problem.details[0].inner, TxHash::of(tx).to_string());
}

on_both_nodes!(a_commit_whose_block_does_not_come);

/// The development node alone: CometBFT's checks cannot be made slow.
#[tokio::test]
async fn a_node_that_does_not_answer_in_time() {
    let setup = Setup::new(NodeKind::Development).node(|setup| setup.check_delay(Duration::from_secs(6)));
    let fixture = Fixture::start(setup).await;
    let tx = fixture.transaction("order").await;
    assert_unknown(&fixture.sync(&tx).await.unwrap_err(), &tx);
    assert_eq!(fixture.status(&tx).await, Status::Unknown);
    // The check is still running; the repeat meets it in the node's cache, and then in the mempool.
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
    let is_waiting = async || fixture.development().chain().waiting(0).0 > 0;
    eventually(SOON, "the check does not end", is_waiting).await;
    fixture.node.block().await;
    assert_eq!(fixture.status(&tx).await, Status::Included);
}

/// The development node alone, because it has to be met in the middle of a check.
#[tokio::test]
async fn a_node_that_dies_while_it_checks() {
    let setup = Setup::new(NodeKind::Development).node(|setup| setup.check_delay(Duration::from_secs(2)));
    let mut fixture = Fixture::start(setup).await;
    for kind in [TypeSync, TypeCommit] {
        let tx = fixture.transaction(kind.as_str_name()).await;
        tokio::select! {
            reply = fixture.submit(&tx, kind) => panic!("{reply:?}"),
            () = fixture.await_broadcasts(&tx, 1) => {}
        }
        // The caller has gone; the submission in flight continues, and a repeat joins it.
        let repeat = timeout(Duration::from_millis(100), fixture.submit(&tx, kind)).await;
        repeat.expect_err("it is answered before the node is");
        fixture.restart_node().await;
        // The node lost it: the client's repeat is sent as a new submission.
        assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
        // Two broadcasts for two requests: the relay does not retry.
        fixture.assert_broadcasts(&tx, 2);
        fixture.node.block().await;
        assert_eq!(fixture.status(&tx).await, Status::Included);
    }
}

async fn a_commit_whose_block_does_not_come(kind: NodeKind) {
    let setup = Setup::new(kind)
        .node(|setup| setup.limits(Limits { commit_wait: Duration::from_millis(300), ..Limits::default() }));
    let mut fixture = Fixture::start(setup).await;
    let tx = fixture.transaction("order").await;
    let check = async {
        fixture.await_broadcasts(&tx, 1).await;
        fixture.sync(&tx).await
    };
    let (commit, check) = tokio::join!(fixture.submit(&tx, TypeCommit), check);
    assert!(check.unwrap().success, "the node accepted it, although no block has it");
    let problem = commit.unwrap_err();
    assert_unknown(&problem, &tx);
    assert!(problem.details[0].message.contains("may still be included"), "{problem}");
    assert_eq!(fixture.status(&tx).await, Status::Pending);
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
    fixture.assert_broadcasts(&tx, 1);
    // CometBFT is set up to make no blocks; if it made any, the first commit would have succeeded.
    if fixture.node.development().is_some() {
        fixture.start_blocks();
        assert!(fixture.submit(&tx, TypeCommit).await.unwrap().height > 1);
        fixture.assert_broadcasts(&tx, 1);
    }
}
