//! Submissions of which nobody knows what became: the relay says so, and the truth comes out later.

use std::time::Duration;

use mesh_problem::{Code, Problem};
use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};
use tokio::time::sleep;

use crate::stage::{Setup, Stage, accepted, already};

/// That the fate is unknown is said with the hash to look for.
fn is_unknown(problem: &Problem, tx: &[u8]) {
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "{problem}");
    assert_eq!(problem.details[0].inner, TxHash::of(tx).to_string());
}

#[tokio::test]
async fn a_node_that_does_not_answer_in_time() {
    let stage = Stage::set(Setup {
        node: |settings| settings.check_delay = Duration::from_secs(6),
        ..Setup::default()
    })
    .await;
    let tx = stage.transaction("order");
    is_unknown(&stage.sync(&tx).await.unwrap_err(), &tx);
    assert_eq!(stage.status(&tx).await, Status::Unknown);
    // The check is still running; the repeat meets it in the node's cache, and then in the mempool.
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    while stage.node().chain().waiting(0).0 == 0 {
        sleep(Duration::from_millis(20)).await;
    }
    stage.block().await;
    assert_eq!(stage.status(&tx).await, Status::Included);
}

#[tokio::test]
async fn a_node_that_dies_while_it_checks() {
    let mut stage = Stage::set(Setup {
        node: |settings| settings.check_delay = Duration::from_secs(2),
        ..Setup::default()
    })
    .await;
    for kind in [TypeSync, TypeCommit] {
        let tx = stage.transaction(kind.as_str_name());
        tokio::select! {
            reply = stage.submit(&tx, kind) => panic!("{reply:?}"),
            () = stage.broadcast_times(&tx, 1) => {}
        }
        // The asker has gone; what is under way goes on, and a repeat joins it.
        tokio::select! {
            reply = stage.submit(&tx, kind) => panic!("{reply:?}"),
            () = sleep(Duration::from_millis(100)) => {}
        }
        stage.kill_node();
        stage.start_node().await;
        stage.readiness(200).await;
        // It was lost with the node: the client's repeat is a submission of its own.
        assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
        assert_eq!(stage.broadcasts(&tx), 2, "nothing is sent again without being asked for");
        stage.block().await;
        assert_eq!(stage.status(&tx).await, Status::Included);
    }
}

#[tokio::test]
async fn a_commit_whose_block_does_not_come() {
    let mut stage = Stage::set(Setup {
        node: |settings| settings.limits.commit_wait = Duration::from_millis(300),
        ..Setup::default()
    })
    .await;
    let tx = stage.transaction("order");
    let problem = stage.submit(&tx, TypeCommit).await.unwrap_err();
    is_unknown(&problem, &tx);
    assert!(problem.details[0].message.contains("may still be included"), "{problem}");
    assert_eq!(stage.status(&tx).await, Status::Pending);
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    assert_eq!(stage.broadcasts(&tx), 1);
    stage.tick();
    assert!(stage.submit(&tx, TypeCommit).await.unwrap().height > 1);
    assert_eq!(stage.broadcasts(&tx), 1);
}
