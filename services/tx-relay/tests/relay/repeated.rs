//! One fate: whoever submits the same again gets the same answer, and the node is asked once.

use std::time::Duration;

use futures_util::future::join_all;
use mesh_testbed::{NodeKind, on_both_nodes};
use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType::*, SubmitTransactionReply, get_transaction_reply::Status};

use crate::stage::{Setup, Stage, accepted, already};

on_both_nodes!(
    equal_submissions_in_flight_share_one_broadcast,
    a_weaker_repeat_gets_the_answer_and_a_stronger_one_goes_on,
    another_replica_says_the_same,
    a_repeat_after_everybody_has_forgotten_is_not_a_refusal,
);

async fn equal_submissions_in_flight_share_one_broadcast(kind: NodeKind) {
    let stage = Stage::set(Setup {
        node: |setup| setup.check_delay(Duration::from_millis(300)),
        ..Setup::before(kind)
    })
    .await;
    let (good, bad) = (stage.transaction("good").await, stage.refused("bad").await);
    let (goods, bads) = tokio::join!(
        join_all((0..20).map(|_| stage.sync(&good))),
        join_all((0..20).map(|_| stage.sync(&bad))),
    );
    assert!(goods.into_iter().all(|reply| reply.unwrap() == accepted(&good)));
    assert!(bads.into_iter().all(|reply| reply.unwrap().code == 89));
    stage.was_broadcast(&good, 1);
    stage.was_broadcast(&bad, 1);
}

async fn a_weaker_repeat_gets_the_answer_and_a_stronger_one_goes_on(kind: NodeKind) {
    let mut stage = Stage::set(Setup::with_blocks(kind)).await;
    let tx = stage.transaction("order").await;
    assert_eq!(stage.submit(&tx, TypeAsync).await.unwrap(), accepted(&tx));
    assert_eq!(stage.submit(&tx, TypeAsync).await.unwrap(), accepted(&tx));
    stage.was_broadcast(&tx, 1);
    // The check asks the node, which has it in its cache by now.
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    let asked = stage.broadcasts(&tx);
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    stage.tick();
    // The commit follows it into a block.
    let executed = stage.submit(&tx, TypeCommit).await.unwrap();
    assert_eq!(executed, SubmitTransactionReply { height: executed.height, ..accepted(&tx) });
    assert!(executed.height > 1);
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        assert_eq!(stage.submit(&tx, kind).await.unwrap(), executed);
    }
    assert_eq!(stage.broadcasts(&tx), asked);
}

async fn another_replica_says_the_same(kind: NodeKind) {
    let stage = Stage::set(Setup {
        relays: 2,
        env: vec![("MESH_RELAY_REMEMBER_S", "0".to_owned())],
        node: |setup| setup.check_delay(Duration::from_millis(200)),
        ..Setup::before(kind)
    })
    .await;
    // Without memory each repeat is that of a replica that knows nothing.
    let (good, bad) = (stage.transaction("good").await, stage.refused("bad").await);
    let first = stage.sync(&good);
    let second = async {
        stage.broadcast_times(&good, 1).await;
        join_all((0..6).map(|_| stage.sync(&good))).await
    };
    let (first, second) = tokio::join!(first, second);
    let replies: Vec<_> = second.into_iter().chain([first]).map(Result::unwrap).collect();
    assert!(replies.iter().all(|reply| *reply == accepted(&good) || *reply == already(&good)), "{replies:?}");
    assert!(replies.contains(&accepted(&good)), "{replies:?}");
    // A check that runs elsewhere: its refusal is the answer, not that the node has seen it.
    let first = stage.sync(&bad);
    let second = async {
        stage.broadcast_times(&bad, 1).await;
        join_all((0..6).map(|_| stage.sync(&bad))).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().code, 89);
    assert!(second.into_iter().all(|reply| reply.unwrap().code == 89));
}

async fn a_repeat_after_everybody_has_forgotten_is_not_a_refusal(kind: NodeKind) {
    let forgets = vec![("MESH_RELAY_REMEMBER_S", "0".to_owned())];
    let mut stage = Stage::set(Setup { env: forgets, ..Setup::with_blocks(kind) }).await;
    let tx = stage.transaction("order").await;
    assert_eq!(stage.sync(&tx).await.unwrap(), accepted(&tx));
    stage.node.block().await;
    assert_eq!(stage.node.included(&TxHash::of(&tx)).await, tx);
    stage.node.kill().await;
    stage.node.restart().await;
    stage.readiness(200).await;
    // The node's cache is gone; it refuses the replay. The block tells the truth.
    assert_eq!(stage.sync(&tx).await.unwrap(), already(&tx));
    assert_eq!(stage.status(&tx).await, Status::Included);
    assert!(stage.submit(&tx, TypeCommit).await.unwrap().height >= 2);
}
