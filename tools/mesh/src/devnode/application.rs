//! The application of a real consensus node: a process of its own that judges transactions for CometBFT and
//! writes the blocks that it decides into the store, as the development node writes its own.

use std::time::UNIX_EPOCH;

use mesh_demo::{Decision, Decisions, Moment};
use mesh_devnode::{Application, serve_application};
use mesh_problem::error_chain;
use mesh_transaction::{Block, Network};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{Duration, sleep},
};

use super::{config::Config, follow, grow};
use crate::{failure::Failure, signals::Signals};

/// Before a block that could not be read is read again.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Runs until asked to stop. A database that went away is waited for; the node goes on meanwhile.
pub(super) async fn run(
    config: &Config,
    listener: TcpListener,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let begun = tokio::select! {
        begun = follow::beginning(config) => begun,
        () = signals.stop() => return Ok(()),
    };
    let network = Network {
        chain_id: begun.chain_id,
        algorithm: config.algorithm.clone(),
        pow_prefix: config.pow_prefix.clone(),
    };
    let opening = Application::open(network, &config.file, config.checks, begun.rules).await;
    let application = opening.map_err(|error| {
        let error = error_chain(&error);
        Failure::failed(format!("the file of the blocks cannot be opened ({error}); start the mesh anew"))
    })?;
    tracing::info!(height = *application.heights().borrow(), "the application answers");
    let written = watch::Sender::new(());
    let seen = written.subscribe();
    tokio::select! {
        never = serve_application(listener, application.clone()) => match never {},
        never = follow::tell_rules(config, &application, seen) => match never {},
        outcome = grow::write(config, Some(&application), signals, &written) => outcome,
    }
}

/// The blocks of the demo network are those that the node decides.
pub(super) struct Decided(pub(super) Application);

impl Decisions for Decided {
    async fn decide(&mut self, height: u64) -> Decision {
        let block = decided(&self.0, height).await;
        let time = Moment::from(UNIX_EPOCH + block.time);
        Decision { height, time, hash: Some(block.hash) }
    }
}

/// Waits for the block of a height.
pub(super) async fn decided(application: &Application, height: u64) -> Block {
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
                // The other end lives as long as the application.
                let _ = heights.changed().await;
            }
            Err(error) => {
                tracing::warn!(error = error_chain(&error), height, "a block could not be read");
                sleep(READ_PAUSE).await;
            }
        }
    }
}
