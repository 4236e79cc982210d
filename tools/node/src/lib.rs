//! The consensus node of a mesh on one machine: the development node, or a real CometBFT with its application.
//! Either way, blocks come into the store: with all their rows on the demo network, else empty.
//!
//! Comes in: the database and its content (demo network or loaded data), by variables; transactions over the
//! RPC. Goes out: new blocks, about one every second.

mod application;
mod cometbft;
mod config;
mod decided;
mod error;
mod follow;
mod grow;
mod process_group;

use std::{io, net::SocketAddr, pin::pin};

pub use cometbft::{CometbftNode, watch as watch_cometbft};
use config::Config;
pub use config::{DEMO_PLAN, DEMO_STATE};
pub use error::NodeError;
pub use grow::NEXT_BLOCK;
use listenfd::ListenFd;
use mesh_launcher::home::Home;
pub use process_group::devnode as devnode_group;
use tokio::{net::TcpListener, sync::watch};

/// The name of the development node's process, and of the command that runs it.
pub const DEVNODE: &str = "devnode";
/// The name of the real consensus node's process.
pub const COMETBFT: &str = "cometbft";
/// The name of its application's process, and of the command that runs it.
pub const APPLICATION: &str = "application";

/// Runs the development node, configured by the environment, until `stop`. Retries while the database is
/// unreachable.
///
/// # Errors
///
/// A variable is wrong, the node cannot start, or the store was replaced by another one.
pub async fn run_devnode(stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    run(&Config::read(Vec::new())?, stop).await
}

/// Runs the development node in this process for a home, with further `variables`.
///
/// # Errors
///
/// As [`run_devnode`].
pub async fn run_devnode_in(
    home: &Home,
    database_url: &str,
    listen: SocketAddr,
    mut variables: Vec<(String, String)>,
    stop: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    set(config::DATABASE_URL, database_url.to_owned());
    set(config::LISTEN, listen.to_string());
    set(config::FILE, home.node().join("blocks").to_string_lossy().into_owned());
    run(&Config::read(variables)?, stop).await
}

async fn run(config: &Config, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    let stop = pin!(stop);
    // Signals each block that is stored.
    let written = watch::Sender::new(());
    let new_blocks = written.subscribe();
    tokio::select! {
        outcome = grow::write(config, None, stop, &written) => outcome,
        error = follow::answer(config, new_blocks) => Err(error),
    }
}

/// Runs the application of a real node until `stop`.
///
/// # Errors
///
/// A variable is wrong, no socket is inherited, or the file of its blocks cannot be opened.
pub async fn run_application(stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    let config = Config::read(Vec::new())?;
    let listener = inherited().map_err(|error| {
        NodeError::Configuration(format!(
            "no socket for the node ({error}); let `mesh up` start the application"
        ))
    })?;
    application::run(&config, listener, pin!(stop)).await
}

fn inherited() -> io::Result<TcpListener> {
    let listener = ListenFd::from_env().take_tcp_listener(0)?;
    let listener = listener.ok_or_else(|| io::Error::other("none is inherited"))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
