//! The blocks that a consensus node has decided, as its application stores them.

use std::time::{Duration, UNIX_EPOCH};

use mesh_demo::{Decision, Decisions, Moment};
use mesh_devnode::Application;
use mesh_problem::error_chain;
use mesh_transaction::Block;
use tokio::time::sleep;

/// Pause before a failed read of a block is repeated.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Decides the blocks of the demo network by those of the consensus node.
pub(super) struct DecidedBlocks(pub(super) Application);

impl Decisions for DecidedBlocks {
    async fn decide(&mut self, height: u64) -> Decision {
        let block = decided_block(&self.0, height).await;
        let time = Moment::from(UNIX_EPOCH + block.time);
        Decision { height, time, hash: Some(block.hash) }
    }
}

/// Waits for the block of a height.
pub(super) async fn decided_block(application: &Application, height: u64) -> Block {
    let mut heights = application.heights();
    loop {
        heights.borrow_and_update();
        match application.block(height).await {
            Ok(Some(block)) => return block,
            Ok(None) if height < application.first() => {
                let first = application.first();
                tracing::error!(height, first, "the store was set back to before the node's first block");
                return std::future::pending().await;
            }
            Ok(None) => {
                // An error is impossible: the sender lives as long as the application.
                let _ = heights.changed().await;
            }
            Err(error) => {
                tracing::warn!(error = error_chain(&error), height, "a block could not be read");
                sleep(READ_PAUSE).await;
            }
        }
    }
}
