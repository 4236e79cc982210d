//! The state of a node after a kill and a restart.

use std::{fs, net::SocketAddr, time::Duration};

use mesh_devnode::{DevNode, Settings};
use mesh_transaction::Block;
use serde_json::json;

use super::fixture::{Fixture, reason, rules};

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

#[tokio::test]
async fn a_file_that_does_not_fit_to_the_store_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("blocks");
    let network = mesh_transaction::Network {
        chain_id: "net-1".into(),
        algorithm: mesh_transaction::ALGORITHM.into(),
        pow_prefix: String::new(),
    };
    let block =
        |height: u64, hash: &str| Block { height, hash: hash.repeat(64), time: Duration::from_secs(height) };
    let start = async |recent: &[Block]| {
        let settings = Settings::new(network.clone(), &file);
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        DevNode::start(settings, anywhere, recent.to_vec(), rules()).await.unwrap()
    };
    let newest = |node: &DevNode| node.chain().newest().map(|block| block.height);
    let node = start(&[block(3, "3")]).await;
    assert_eq!(newest(&node), Some(3));
    node.chain().commit(block(4, "4"), rules()).await.unwrap();
    drop(node);
    // The store is one block ahead: a kill between both. And many ahead: blocks from elsewhere.
    assert_eq!(newest(&start(&[block(3, "3"), block(4, "4"), block(5, "5")]).await), Some(5));
    assert_eq!(newest(&start(&[block(99, "9")]).await), Some(99));
    let aside = file.with_extension("other");
    assert!(!aside.exists());
    // The store has another block 4.
    assert_eq!(newest(&start(&[block(4, "a"), block(5, "5")]).await), Some(5));
    assert!(aside.exists());
    // The store was set back.
    let node = start(&[block(5, "5")]).await;
    node.chain().commit(block(6, "6"), rules()).await.unwrap();
    drop(node);
    fs::remove_file(&aside).unwrap();
    assert_eq!(newest(&start(&[block(5, "5")]).await), Some(5));
    assert!(aside.exists());
}

#[tokio::test]
async fn blocks_come_in_rising_order() {
    let fixture = Fixture::new().await;
    let newest = fixture.node.chain().newest().unwrap();
    let error = fixture.node.chain().commit(newest, rules()).await.unwrap_err();
    assert_eq!(error.to_string(), "block 10 does not follow block 10");
}
