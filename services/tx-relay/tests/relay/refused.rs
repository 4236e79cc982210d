//! Transactions that the node or the relay refuses, and a node that cannot be reached.

use mesh_devnode::Limits;
use mesh_problem::{Code, Problem};
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{
    CheckRawTransactionRequest, SubmissionType::*, SubmitTransactionReply, get_transaction_reply::Status,
};

use crate::fixture::{Fixture, Setup, accepted};

fn error_of(result: Result<SubmitTransactionReply, Problem>) -> (Code, u32) {
    let problem = result.unwrap_err();
    (problem.code, problem.number())
}

on_both_nodes!(
    a_refused_check_is_an_answer_with_its_reason,
    each_rule_of_the_network_has_its_code,
    a_transaction_that_is_not_checked_is_an_error_and_is_not_cached,
    an_unreachable_node_is_unavailable_at_once_and_used_after_its_restart,
    a_commit_can_be_switched_off,
    at_a_node_that_keeps_refused_transactions_a_repeat_is_ambiguous,
);

async fn a_refused_check_is_an_answer_with_its_reason(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind)).await;
    fixture.start_blocks();
    for (input, asked) in [("1", TypeSync), ("2", TypeCommit)] {
        let tx = fixture.refused(input).await;
        let refused = SubmitTransactionReply {
            code: 89,
            data: "proof of work is missing".to_owned(),
            ..SubmitTransactionReply::default()
        };
        assert_eq!(fixture.submit(&tx, asked).await.unwrap(), refused);
        // A refusal is final: it answers repeats of every type.
        for again in [TypeAsync, TypeSync, TypeCommit] {
            assert_eq!(fixture.submit(&tx, again).await.unwrap(), refused);
        }
        fixture.assert_broadcasts(&tx, 1);
        let reply = fixture.get_transaction(&tx).await;
        assert_eq!(
            (reply.status(), reply.code, reply.log.as_str()),
            (Status::Refused, 89, "proof of work is missing")
        );
        let check = fixture.ask(&CheckRawTransactionRequest { tx }).await.unwrap();
        assert_eq!((check.success, check.code, check.data.as_str()), (false, 89, "proof of work is missing"));
    }
    let nonsense = bytes::Bytes::from_static(b"nonsense");
    assert_eq!(fixture.sync(&nonsense).await.unwrap().code, 60);
}

async fn each_rule_of_the_network_has_its_code(kind: NodeKind) {
    let fixture = Fixture::start(Setup::new(kind)).await;
    let good = fixture.signed("order").await;
    assert_eq!(fixture.sync(&encode(&good).into()).await.unwrap().code, 0);
    let mut forged = fixture.signed("forged").await;
    forged.input_data = "another".into();
    let mut used = fixture.signed("used").await;
    used.pow = good.pow;
    let mut poor = fixture.signed("poor").await;
    poor.pow.as_mut().unwrap().tid = String::new();
    for (tx, code, reason) in
        [(forged, 51, "signature"), (used, 89, "tid already used"), (poor, 89, "proof of work tid must have")]
    {
        let reply = fixture.sync(&encode(&tx).into()).await.unwrap();
        assert_eq!((reply.success, reply.code, reply.height), (false, code, 0), "{reply:?}");
        assert!(reply.data.contains(reason), "{reply:?}");
    }
}

async fn a_transaction_that_is_not_checked_is_an_error_and_is_not_cached(kind: NodeKind) {
    let setup = Setup::new(kind)
        .node(|setup| setup.limits(Limits { mempool_txs: 1, tx_bytes: 1000, ..Limits::default() }));
    let fixture = Fixture::start(setup).await;
    let (first, second) = (fixture.transaction("1").await, fixture.transaction("2").await);
    let large = fixture.transaction(&"x".repeat(1000)).await;
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(error_of(fixture.submit(&large, kind).await), (Code::InvalidArgument, 90_002));
    }
    assert_eq!(fixture.sync(&first).await.unwrap(), accepted(&first));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(error_of(fixture.submit(&second, kind).await), (Code::ResourceExhausted, 90_002));
    }
    assert_eq!(fixture.status(&second).await, Status::Unknown);
    // CometBFT is set up to make no blocks, so that its mempool stays full.
    if let Some(node) = fixture.node.development() {
        node.block().await;
        assert_eq!(fixture.sync(&second).await.unwrap(), accepted(&second));
    }
}

/// The development node alone: CometBFT 0.38 takes transactions while it catches up, and one without peers
/// never does.
#[tokio::test]
async fn a_node_that_catches_up_is_unavailable() {
    let fixture = Fixture::start(Setup::new(NodeKind::Development)).await;
    let tx = fixture.transaction("1").await;
    fixture.development().chain().catch_up(true);
    assert!(fixture.await_readiness(503).await.contains("catching up"));
    assert_eq!(error_of(fixture.sync(&tx).await), (Code::Unavailable, 90_002));
    fixture.development().chain().catch_up(false);
    fixture.await_readiness(200).await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
}

async fn an_unreachable_node_is_unavailable_at_once_and_used_after_its_restart(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind)).await;
    let tx = fixture.transaction("2").await;
    fixture.node.kill().await;
    assert!(fixture.await_readiness(503).await.contains("unreachable"));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(error_of(fixture.submit(&tx, kind).await), (Code::Unavailable, 90_001));
    }
    fixture.node.restart().await;
    fixture.await_readiness(200).await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
    fixture.assert_broadcasts(&tx, 1);
    fixture.start_blocks();
    assert_eq!(fixture.node.included(&TxHash::of(&tx)).await, tx);
}

async fn a_commit_can_be_switched_off(kind: NodeKind) {
    let fixture = Fixture::start(Setup::new(kind).env("MESH_RELAY_ALLOW_COMMIT", "false")).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(error_of(fixture.submit(&tx, TypeCommit).await), (Code::Unimplemented, 10_000));
    fixture.assert_broadcasts(&tx, 0);
}

async fn at_a_node_that_keeps_refused_transactions_a_repeat_is_ambiguous(kind: NodeKind) {
    let setup =
        Setup::new(kind).env("MESH_RELAY_NODE_KEEPS_REFUSED", "true").env("MESH_RELAY_REMEMBER_S", "0");
    let setup = setup.node(|setup| setup.limits(Limits { keep_refused: true, ..Limits::default() }));
    let fixture = Fixture::start(setup).await;
    let tx = fixture.refused("order").await;
    assert_eq!(fixture.sync(&tx).await.unwrap().code, 89);
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(error_of(fixture.submit(&tx, kind).await), (Code::AlreadyExists, 90_002));
    }
}
