//! What the node or the relay refuses, and a node that takes nothing.

use mesh_problem::{Code, Problem};
use proto_msgs::v2::{
    CheckRawTransactionRequest, SubmissionType::*, SubmitTransactionReply, get_transaction_reply::Status,
};

use crate::stage::{Setup, Stage, accepted};

fn said(result: Result<SubmitTransactionReply, Problem>) -> (Code, u32) {
    let problem = result.unwrap_err();
    (problem.code, problem.number())
}

#[tokio::test]
async fn a_refused_check_is_an_answer_with_its_reason() {
    let mut stage = Stage::set(Setup::default()).await;
    stage.tick();
    for (input, kind) in [("1", TypeSync), ("2", TypeCommit)] {
        let tx = stage.refused(input);
        let refused = SubmitTransactionReply {
            code: 89,
            data: "proof of work is missing".to_owned(),
            ..SubmitTransactionReply::default()
        };
        assert_eq!(stage.submit(&tx, kind).await.unwrap(), refused);
        // Whatever is asked for later, nothing can follow a refusal.
        for again in [TypeAsync, TypeSync, TypeCommit] {
            assert_eq!(stage.submit(&tx, again).await.unwrap(), refused);
        }
        assert_eq!(stage.broadcasts(&tx), 1);
        let fate = stage.fate(&tx).await;
        assert_eq!(
            (fate.status(), fate.code, fate.log.as_str()),
            (Status::Refused, 89, "proof of work is missing")
        );
        let check = stage.ask(&CheckRawTransactionRequest { tx }).await.unwrap();
        assert_eq!((check.success, check.code, check.data.as_str()), (false, 89, "proof of work is missing"));
    }
    let nonsense = bytes::Bytes::from_static(b"nonsense");
    assert_eq!(stage.sync(&nonsense).await.unwrap().code, 60);
}

#[tokio::test]
async fn what_the_node_does_not_look_at_is_an_error_and_is_not_remembered() {
    let stage = Stage::set(Setup {
        node: |settings| (settings.limits.mempool_txs, settings.limits.tx_bytes) = (1, 1000),
        ..Setup::default()
    })
    .await;
    let [first, second] = ["1", "2"].map(|input| stage.transaction(input));
    let large = stage.transaction(&"x".repeat(1000));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&large, kind).await), (Code::InvalidArgument, 90_002));
    }
    assert_eq!(stage.sync(&first).await.unwrap(), accepted(&first));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&second, kind).await), (Code::ResourceExhausted, 90_002));
    }
    assert_eq!(stage.status(&second).await, Status::Unknown);
    stage.block().await;
    assert_eq!(stage.sync(&second).await.unwrap(), accepted(&second));
}

#[tokio::test]
async fn a_node_that_catches_up_or_is_away_is_unavailable_at_once_and_used_when_it_is_back() {
    let mut stage = Stage::set(Setup::default()).await;
    let [first, second] = ["1", "2"].map(|input| stage.transaction(input));
    stage.node().chain().catch_up(true);
    assert!(stage.readiness(503).await.contains("catching up"));
    assert_eq!(said(stage.sync(&first).await), (Code::Unavailable, 90_002));
    stage.node().chain().catch_up(false);
    stage.readiness(200).await;
    assert_eq!(stage.sync(&first).await.unwrap(), accepted(&first));
    stage.kill_node();
    assert!(stage.readiness(503).await.contains("away"));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&second, kind).await), (Code::Unavailable, 90_001));
    }
    stage.start_node().await;
    stage.readiness(200).await;
    assert_eq!(stage.sync(&second).await.unwrap(), accepted(&second));
    assert_eq!(stage.broadcasts(&second), 1);
}

#[tokio::test]
async fn a_commit_can_be_switched_off() {
    let off = ("MESH_RELAY_ALLOW_COMMIT", "false".to_owned());
    let stage = Stage::set(Setup { env: vec![off], ..Setup::default() }).await;
    let tx = stage.transaction("order");
    assert_eq!(said(stage.submit(&tx, TypeCommit).await), (Code::Unimplemented, 10_000));
    assert_eq!(stage.broadcasts(&tx), 0);
}

#[tokio::test]
async fn at_a_node_that_keeps_refused_transactions_a_repeat_says_nothing() {
    let keeps = ("MESH_RELAY_NODE_KEEPS_REFUSED", "true".to_owned());
    let stage = Stage::set(Setup {
        relays: 1,
        env: vec![keeps, ("MESH_RELAY_REMEMBER_S", "0".to_owned())],
        node: |settings| settings.limits.keep_refused = true,
    })
    .await;
    let tx = stage.refused("order");
    assert_eq!(stage.sync(&tx).await.unwrap().code, 89);
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&tx, kind).await), (Code::AlreadyExists, 90_002));
    }
}
