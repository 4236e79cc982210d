//! Repeated submissions of one transaction get the same answer, and the node gets it once.

use std::time::Duration;

use futures_util::future::join_all;
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::TxHash;
use proto_msgs::{
    COMMIT_MS,
    v2::{SubmissionType::*, SubmitTransactionReply, get_transaction_reply::Status},
};
use tokio::time::timeout;

use crate::fixture::{Fixture, Setup, accepted, already};

on_both_nodes!(
    equal_submissions_in_flight_share_one_broadcast,
    a_weaker_repeat_gets_the_answer_and_a_stronger_one_goes_on,
    a_check_is_not_held_up_by_one_who_waits_for_a_block,
    another_replica_gives_the_same_answer,
    a_repeat_after_all_caches_are_lost_is_not_a_refusal,
);

async fn equal_submissions_in_flight_share_one_broadcast(kind: NodeKind) {
    let setup = Setup::new(kind).node(|setup| setup.check_delay(Duration::from_millis(300)));
    let fixture = Fixture::start(setup).await;
    let (good, bad) = (fixture.transaction("good").await, fixture.refused("bad").await);
    let (goods, bads) = tokio::join!(
        join_all((0..20).map(|_| fixture.sync(&good))),
        join_all((0..20).map(|_| fixture.sync(&bad))),
    );
    assert!(goods.into_iter().all(|reply| reply.unwrap() == accepted(&good)));
    assert!(bads.into_iter().all(|reply| reply.unwrap().code == 89));
    fixture.assert_broadcasts(&good, 1);
    fixture.assert_broadcasts(&bad, 1);
}

async fn a_weaker_repeat_gets_the_answer_and_a_stronger_one_goes_on(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind)).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(fixture.submit(&tx, TypeAsync).await.unwrap(), accepted(&tx));
    assert_eq!(fixture.submit(&tx, TypeAsync).await.unwrap(), accepted(&tx));
    fixture.assert_broadcasts(&tx, 1);
    // The check asks the node, which has it in its cache by now.
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
    let broadcasts = fixture.broadcasts(&tx);
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
    fixture.start_blocks();
    // The commit waits for the block without another broadcast.
    let executed = fixture.submit(&tx, TypeCommit).await.unwrap();
    assert_eq!(executed, SubmitTransactionReply { height: executed.height, ..accepted(&tx) });
    assert!(executed.height > 1);
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(fixture.submit(&tx, kind).await.unwrap(), executed);
    }
    assert_eq!(fixture.broadcasts(&tx), broadcasts);
}

async fn a_check_is_not_held_up_by_one_who_waits_for_a_block(kind: NodeKind) {
    // Neither node makes a block, so that a commit waits until it is late.
    let fixture = Fixture::start(Setup::new(kind)).await;
    let (good, bad) = (fixture.transaction("good").await, fixture.refused("bad").await);
    for tx in [&good, &bad] {
        assert_eq!(fixture.submit(tx, TypeAsync).await.unwrap(), accepted(tx));
        let commit = timeout(Duration::from_millis(300), fixture.submit(tx, TypeCommit)).await;
        commit.expect_err("it is answered without a block");
    }
    let replies = async { tokio::join!(fixture.sync(&good), fixture.sync(&bad)) };
    let commit_wait = Duration::from_millis(COMMIT_MS.into());
    let (good_reply, bad_reply) = timeout(commit_wait / 2, replies).await.expect("they wait for a block");
    assert_eq!(good_reply.unwrap(), already(&good));
    assert_eq!(bad_reply.unwrap().code, 89);
    // The refusal is known from then on, also to those who wait for a block.
    assert_eq!(fixture.submit(&bad, TypeCommit).await.unwrap().code, 89);
}

async fn another_replica_gives_the_same_answer(kind: NodeKind) {
    let setup = Setup { relays: 2, ..Setup::new(kind) }.env("MESH_RELAY_REMEMBER_S", "0");
    let setup = setup.node(|setup| setup.check_delay(Duration::from_millis(200)));
    let fixture = Fixture::start(setup).await;
    // Without cached results, either replica handles each repeat like one that has not seen it.
    let (good, bad) = (fixture.transaction("good").await, fixture.refused("bad").await);
    let first = fixture.sync(&good);
    let second = async {
        fixture.await_broadcasts(&good, 1).await;
        join_all((0..6).map(|_| fixture.sync(&good))).await
    };
    let (first, second) = tokio::join!(first, second);
    let replies: Vec<_> = second.into_iter().chain([first]).map(Result::unwrap).collect();
    assert!(replies.iter().all(|reply| *reply == accepted(&good) || *reply == already(&good)), "{replies:?}");
    assert!(replies.contains(&accepted(&good)), "{replies:?}");
    // While another replica's check is running, its refusal is the answer, not "already in cache".
    let first = fixture.sync(&bad);
    let second = async {
        fixture.await_broadcasts(&bad, 1).await;
        join_all((0..6).map(|_| fixture.sync(&bad))).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().code, 89);
    assert!(second.into_iter().all(|reply| reply.unwrap().code == 89));
}

async fn a_repeat_after_all_caches_are_lost_is_not_a_refusal(kind: NodeKind) {
    let mut fixture = Fixture::start(Setup::with_blocks(kind).env("MESH_RELAY_REMEMBER_S", "0")).await;
    let tx = fixture.transaction("order").await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
    fixture.node.block().await;
    assert_eq!(fixture.node.included(&TxHash::of(&tx)).await, tx);
    fixture.restart_node().await;
    // The node has lost its cache and refuses the replay; the relay finds the transaction in the block.
    assert_eq!(fixture.sync(&tx).await.unwrap(), already(&tx));
    assert_eq!(fixture.status(&tx).await, Status::Included);
    assert!(fixture.submit(&tx, TypeCommit).await.unwrap().height >= 2);
}

/// The development node alone: CometBFT makes no block on demand.
#[tokio::test]
async fn a_transaction_that_the_node_has_lost_is_given_to_it_again() {
    let mut fixture = Fixture::start(Setup::new(NodeKind::Development)).await;
    let (lost, bad) = (fixture.transaction("lost").await, fixture.refused("bad").await);
    assert_eq!(fixture.submit(&bad, TypeAsync).await.unwrap(), accepted(&bad));
    assert_eq!(fixture.sync(&lost).await.unwrap(), accepted(&lost));
    fixture.restart_node().await;
    fixture.start_blocks();
    let executed = fixture.submit(&lost, TypeCommit).await.unwrap();
    assert!(executed.success && executed.height > 1, "{executed:?}");
    assert_eq!(fixture.status(&lost).await, Status::Included);
    // What was accepted without a check is checked when it is submitted again after as long.
    assert_eq!(fixture.submit(&bad, TypeAsync).await.unwrap().code, 89);
    assert_eq!(fixture.status(&bad).await, Status::Refused);
}
