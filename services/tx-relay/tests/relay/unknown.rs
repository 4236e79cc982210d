//! Submissions of which nobody knows what became: the relay says so, and the truth comes out later.

use std::time::Duration;

use mesh_devnode::Limits;
use mesh_problem::{Code, Problem};
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};
use tokio::time::sleep;

use crate::stage::{Setup, Stage, accepted, already};

/// That the fate is unknown is said with the hash to look for.
fn is_unknown(problem: &Problem, tx: &[u8]) {
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "{problem}");
    assert_eq!(problem.details[0].inner, TxHash::of(tx).to_string());
}

on_both_nodes!(a_commit_whose_block_does_not_come);

/// The development node alone: CometBFT's checks cannot be made slow.
#[tokio::test]
async fn a_node_that_does_not_answer_in_time() {
    let stage = Stage::set(Setup {
        node: |setup| setup.check_delay(Duration::from_secs(6)),
        ..Setup::before(NodeKind::Development)
    })
    .await;
    let tx = stage.transaction("order").await;
    is_unknown(&stage.sync(&tx).await.unwrap_err(), &tx);
    assert_eq!(stage.status(&tx).await, Status::Unknown);
    // The check is still running; the repeat meets it in the node's cache, and then in the mempool.
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    while stage.development().chain().waiting(0).0 == 0 {
        sleep(Duration::from_millis(20)).await;
    }
    stage.node.block().await;
    assert_eq!(stage.status(&tx).await, Status::Included);
}

/// The development node alone, because it has to be met in the middle of a check.
#[tokio::test]
async fn a_node_that_dies_while_it_checks() {
    let mut stage = Stage::set(Setup {
        node: |setup| setup.check_delay(Duration::from_secs(2)),
        ..Setup::before(NodeKind::Development)
    })
    .await;
    for kind in [TypeSync, TypeCommit] {
        let tx = stage.transaction(kind.as_str_name()).await;
        tokio::select! {
            reply = stage.submit(&tx, kind) => panic!("{reply:?}"),
            () = stage.broadcast_times(&tx, 1) => {}
        }
        // The asker has gone; what is under way goes on, and a repeat joins it.
        tokio::select! {
            reply = stage.submit(&tx, kind) => panic!("{reply:?}"),
            () = sleep(Duration::from_millis(100)) => {}
        }
        stage.node.kill().await;
        stage.node.restart().await;
        stage.readiness(200).await;
        // It was lost with the node: the client's repeat is a submission of its own.
        assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
        // Nothing is sent again without being asked for.
        stage.was_broadcast(&tx, 2);
        stage.node.block().await;
        assert_eq!(stage.status(&tx).await, Status::Included);
    }
}

async fn a_commit_whose_block_does_not_come(kind: NodeKind) {
    let mut stage = Stage::set(Setup {
        node: |setup| setup.limits(Limits { commit_wait: Duration::from_millis(300), ..Limits::default() }),
        ..Setup::before(kind)
    })
    .await;
    let tx = stage.transaction("order").await;
    let problem = stage.submit(&tx, TypeCommit).await.unwrap_err();
    is_unknown(&problem, &tx);
    assert!(problem.details[0].message.contains("may still be included"), "{problem}");
    assert_eq!(stage.status(&tx).await, Status::Pending);
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    stage.was_broadcast(&tx, 1);
    // CometBFT makes no block now: one that does would make this one, too.
    if stage.node.development().is_some() {
        stage.tick();
        assert!(stage.submit(&tx, TypeCommit).await.unwrap().height > 1);
        stage.was_broadcast(&tx, 1);
    }
}
