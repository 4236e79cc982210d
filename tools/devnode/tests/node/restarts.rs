//! What a node knows after it was killed.

use std::{fs, net::SocketAddr, time::Duration};

use mesh_devnode::{DevNode, Settings};
use mesh_transaction::Block;
use serde_json::json;

use super::stage::{Stage, reason, rules};

#[tokio::test]
async fn transactions_of_blocks_are_known_after_a_kill_and_refused_as_replays() {
    let stage = Stage::set().await;
    let (kept, lost) = (stage.transaction(1, "kept"), stage.transaction(1, "lost"));
    stage.send("broadcast_tx_sync", &kept).await;
    let height = stage.blocks(1).await;
    stage.send("broadcast_tx_sync", &lost).await;
    let url = stage.node.url();

    let stage = stage.restart(|_| {}).await;
    assert_eq!(stage.node.url(), url);
    assert_eq!(stage.node.chain().newest().map(|block| block.height), Some(height));
    assert_eq!(stage.height_of(&kept).await, Some(height));
    let result = stage.send("broadcast_tx_sync", &kept).await;
    assert_eq!(
        (&result["code"], reason(&result)),
        (&json!(51), "transaction was submitted before".to_owned())
    );
    // What waited is gone with its process, as a node's mempool is, and may come again.
    assert_eq!(stage.height_of(&lost).await, None);
    assert_eq!(stage.send("broadcast_tx_sync", &lost).await["code"], 0);
    let next = stage.blocks(1).await;
    assert_eq!((next, stage.height_of(&lost).await), (height + 1, Some(next)));
    // Its tid is remembered, too: the rules know it before the chain does.
    let stage = stage.restart(|_| {}).await;
    assert_eq!(stage.send("check_tx", &lost).await["code"], 51);
    // Long after its work has left the window it is still a replay.
    stage.blocks(6).await;
    assert_eq!(stage.send("check_tx", &lost).await["code"], 51);
}

#[tokio::test]
async fn a_block_that_a_kill_has_torn_never_was() {
    let stage = Stage::set().await;
    let (first, second) = (stage.transaction(1, "first"), stage.transaction(1, "second"));
    stage.send("broadcast_tx_sync", &first).await;
    let height = stage.blocks(1).await;
    stage.send("broadcast_tx_sync", &second).await;
    stage.blocks(1).await;
    let stage = stage
        .restart(|file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
        })
        .await;
    assert_eq!(stage.node.chain().newest().map(|block| block.height), Some(height));
    assert_eq!(stage.height_of(&first).await, Some(height));
    assert_eq!(stage.height_of(&second).await, None);
    assert_eq!(stage.send("broadcast_tx_sync", &second).await["code"], 0);
    stage.blocks(1).await;
    assert_eq!(stage.height_of(&second).await, Some(height + 1));
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
    let stage = Stage::set().await;
    let newest = stage.node.chain().newest().unwrap();
    let error = stage.node.chain().commit(newest, rules()).await.unwrap_err();
    assert_eq!(error.to_string(), "block 10 does not follow block 10");
}
