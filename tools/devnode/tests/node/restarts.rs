//! The state of a node after a kill and a restart.

use std::fs;

use serde_json::json;

use super::fixture::{Fixture, reason};

#[tokio::test]
async fn transactions_of_blocks_are_known_after_a_kill_and_refused_as_replays() {
    let fixture = Fixture::new().await;
    let (kept, lost) = (fixture.transaction(1, "kept"), fixture.transaction(1, "lost"));
    fixture.send("broadcast_tx_sync", &kept).await;
    let height = fixture.blocks(1).await;
    fixture.send("broadcast_tx_sync", &lost).await;
    let url = fixture.node.url();

    let fixture = fixture.restart(|_| {}).await;
    assert_eq!(fixture.node.url(), url);
    assert_eq!(fixture.node.chain().newest().map(|block| block.height), Some(height));
    assert_eq!(fixture.height_of(&kept).await, Some(height));
    let result = fixture.send("broadcast_tx_sync", &kept).await;
    assert_eq!(
        (&result["code"], reason(&result)),
        (&json!(51), "transaction was submitted before".to_owned())
    );
    // The mempool is lost with the process, so its transaction may be sent again.
    assert_eq!(fixture.height_of(&lost).await, None);
    assert_eq!(fixture.send("broadcast_tx_sync", &lost).await["code"], 0);
    let next = fixture.blocks(1).await;
    assert_eq!((next, fixture.height_of(&lost).await), (height + 1, Some(next)));
    // Its tid is restored, too: the spam rules refuse it before the replay check does.
    let fixture = fixture.restart(|_| {}).await;
    assert_eq!(fixture.send("check_tx", &lost).await["code"], 51);
    // Long after its work has left the window it is still a replay.
    fixture.blocks(6).await;
    assert_eq!(fixture.send("check_tx", &lost).await["code"], 51);
}

#[tokio::test]
async fn a_block_that_a_kill_has_torn_never_was() {
    let fixture = Fixture::new().await;
    let (first, second) = (fixture.transaction(1, "first"), fixture.transaction(1, "second"));
    fixture.send("broadcast_tx_sync", &first).await;
    let height = fixture.blocks(1).await;
    fixture.send("broadcast_tx_sync", &second).await;
    fixture.blocks(1).await;
    let fixture = fixture
        .restart(|file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
        })
        .await;
    assert_eq!(fixture.node.chain().newest().map(|block| block.height), Some(height));
    assert_eq!(fixture.height_of(&first).await, Some(height));
    assert_eq!(fixture.height_of(&second).await, None);
    assert_eq!(fixture.send("broadcast_tx_sync", &second).await["code"], 0);
    fixture.blocks(1).await;
    assert_eq!(fixture.height_of(&second).await, Some(height + 1));
}
