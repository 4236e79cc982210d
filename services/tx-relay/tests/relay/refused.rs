//! What the node or the relay refuses, and a node that takes nothing.

use mesh_devnode::Limits;
use mesh_problem::{Code, Problem};
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{
    CheckRawTransactionRequest, SubmissionType::*, SubmitTransactionReply, get_transaction_reply::Status,
};

use crate::stage::{Setup, Stage, accepted};

fn said(result: Result<SubmitTransactionReply, Problem>) -> (Code, u32) {
    let problem = result.unwrap_err();
    (problem.code, problem.number())
}

on_both_nodes!(
    a_refused_check_is_an_answer_with_its_reason,
    each_rule_of_the_network_has_its_code,
    what_the_node_does_not_look_at_is_an_error_and_is_not_remembered,
    a_node_that_is_away_is_unavailable_at_once_and_used_when_it_is_back,
    a_commit_can_be_switched_off,
    at_a_node_that_keeps_refused_transactions_a_repeat_says_nothing,
);

async fn a_refused_check_is_an_answer_with_its_reason(kind: NodeKind) {
    let mut stage = Stage::set(Setup::with_blocks(kind)).await;
    stage.tick();
    for (input, asked) in [("1", TypeSync), ("2", TypeCommit)] {
        let tx = stage.refused(input).await;
        let refused = SubmitTransactionReply {
            code: 89,
            data: "proof of work is missing".to_owned(),
            ..SubmitTransactionReply::default()
        };
        assert_eq!(stage.submit(&tx, asked).await.unwrap(), refused);
        // Whatever is asked for later, nothing can follow a refusal.
        for again in [TypeAsync, TypeSync, TypeCommit] {
            assert_eq!(stage.submit(&tx, again).await.unwrap(), refused);
        }
        stage.was_broadcast(&tx, 1);
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

async fn each_rule_of_the_network_has_its_code(kind: NodeKind) {
    let stage = Stage::set(Setup::before(kind)).await;
    let good = stage.signed("order").await;
    assert_eq!(stage.sync(&encode(&good).into()).await.unwrap().code, 0);
    let mut forged = stage.signed("forged").await;
    forged.input_data = "another".into();
    let mut used = stage.signed("used").await;
    used.pow = good.pow;
    let mut poor = stage.signed("poor").await;
    poor.pow.as_mut().unwrap().tid = String::new();
    for (tx, code, reason) in
        [(forged, 51, "signature"), (used, 89, "tid already used"), (poor, 89, "proof of work tid must have")]
    {
        let reply = stage.sync(&encode(&tx).into()).await.unwrap();
        assert_eq!((reply.success, reply.code, reply.height), (false, code, 0), "{reply:?}");
        assert!(reply.data.contains(reason), "{reply:?}");
    }
}

async fn what_the_node_does_not_look_at_is_an_error_and_is_not_remembered(kind: NodeKind) {
    let stage = Stage::set(Setup {
        node: |setup| setup.limits(Limits { mempool_txs: 1, tx_bytes: 1000, ..Limits::default() }),
        ..Setup::before(kind)
    })
    .await;
    let (first, second) = (stage.transaction("1").await, stage.transaction("2").await);
    let large = stage.transaction(&"x".repeat(1000)).await;
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&large, kind).await), (Code::InvalidArgument, 90_002));
    }
    assert_eq!(stage.sync(&first).await.unwrap(), accepted(&first));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&second, kind).await), (Code::ResourceExhausted, 90_002));
    }
    assert_eq!(stage.status(&second).await, Status::Unknown);
    // CometBFT makes no block now: one that does would not stay full.
    if let Some(node) = stage.node.development() {
        node.block().await;
        assert_eq!(stage.sync(&second).await.unwrap(), accepted(&second));
    }
}

/// The development node alone: CometBFT 0.38 takes transactions while it catches up, and one without peers
/// never does.
#[tokio::test]
async fn a_node_that_catches_up_is_unavailable() {
    let stage = Stage::set(Setup::before(NodeKind::Development)).await;
    let tx = stage.transaction("1").await;
    stage.development().chain().catch_up(true);
    assert!(stage.readiness(503).await.contains("catching up"));
    assert_eq!(said(stage.sync(&tx).await), (Code::Unavailable, 90_002));
    stage.development().chain().catch_up(false);
    stage.readiness(200).await;
    assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
}

async fn a_node_that_is_away_is_unavailable_at_once_and_used_when_it_is_back(kind: NodeKind) {
    let mut stage = Stage::set(Setup::with_blocks(kind)).await;
    let tx = stage.transaction("2").await;
    stage.node.kill().await;
    assert!(stage.readiness(503).await.contains("away"));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&tx, kind).await), (Code::Unavailable, 90_001));
    }
    stage.node.restart().await;
    stage.readiness(200).await;
    assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
    stage.was_broadcast(&tx, 1);
    stage.tick();
    assert_eq!(stage.node.included(&TxHash::of(&tx)).await, tx);
}

async fn a_commit_can_be_switched_off(kind: NodeKind) {
    let off = ("MESH_RELAY_ALLOW_COMMIT", "false".to_owned());
    let stage = Stage::set(Setup { env: vec![off], ..Setup::before(kind) }).await;
    let tx = stage.transaction("order").await;
    assert_eq!(said(stage.submit(&tx, TypeCommit).await), (Code::Unimplemented, 10_000));
    stage.was_broadcast(&tx, 0);
}

async fn at_a_node_that_keeps_refused_transactions_a_repeat_says_nothing(kind: NodeKind) {
    let keeps = ("MESH_RELAY_NODE_KEEPS_REFUSED", "true".to_owned());
    let stage = Stage::set(Setup {
        env: vec![keeps, ("MESH_RELAY_REMEMBER_S", "0".to_owned())],
        node: |setup| setup.limits(Limits { keep_refused: true, ..Limits::default() }),
        ..Setup::before(kind)
    })
    .await;
    let tx = stage.refused("order").await;
    assert_eq!(stage.sync(&tx).await.unwrap().code, 89);
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(said(stage.submit(&tx, kind).await), (Code::AlreadyExists, 90_002));
    }
}
