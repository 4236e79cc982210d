//! The consensus node of a mesh on one machine: the development node, or a real CometBFT with its application.
//! Either one makes blocks with the events of the demo network, else blocks without events; `ingest` writes them into
//! the store.

mod cometbft;
mod config;
mod error;
mod prepare;
mod process_group;
mod store;

use std::{io, net::SocketAddr, time::Duration};

pub use cometbft::{CometbftNode, watch as watch_cometbft};
use config::Config;
pub use error::NodeError;
use listenfd::ListenFd;
use mesh_devnode::{Application, DevNode, Settings, serve_application};
use mesh_launcher::home::Home;
use mesh_problem::error_chain;
pub use prepare::prepare_devnode;
pub use process_group::devnode as devnode_group;
pub use store::DemoNetwork;
use tokio::{
    net::TcpListener,
    time::{MissedTickBehavior, interval},
};

use crate::error::failed;

/// Shortest time between two blocks.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);
/// The name of the development node's process, and of the command that runs it.
pub const DEVNODE: &str = "devnode";
/// The name of the real consensus node's process.
pub const COMETBFT: &str = "cometbft";
/// The name of its application's process, and of the command that runs it.
pub const APPLICATION: &str = "application";

/// Runs the development node, configured by the environment, until `stop`. Its chain file has to be there
/// ([`prepare_devnode`]).
///
/// # Errors
/// A variable is wrong, or the node cannot start.
pub async fn run_devnode(stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    run(Config::read(Vec::new())?, stop).await
}

/// Runs the development node in this process for a home, as [`run_devnode`] does.
///
/// # Errors
/// As [`run_devnode`].
pub async fn run_devnode_in(
    home: &Home,
    listen: SocketAddr,
    stop: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    let file = prepare::devnode_file(home).to_string_lossy().into_owned();
    let variables = vec![(config::LISTEN.to_owned(), listen.to_string()), (config::FILE.to_owned(), file)];
    run(Config::read(variables)?, stop).await
}

async fn run(config: Config, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    let node = DevNode::start(config.settings, config.listen).await.map_err(|error| {
        let error = error_chain(&error);
        failed!("the node cannot be started ({error}); try again")
    })?;
    node.chain().catch_up(config.catching_up);
    tracing::info!(url = node.url(), "the development node answers");
    let mut period = interval(config.block_period.max(SHORTEST_PERIOD));
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let blocks = async {
        loop {
            period.tick().await;
            if let Err(error) = node.chain().next_block().await {
                tracing::warn!(error = error_chain(&error), "a block could not be written; retrying");
            }
        }
    };
    tokio::select! {
        () = blocks => Ok(()),
        () = stop => Ok(()),
    }
}

/// Runs the application of a real node until `stop`: its own process that checks and executes transactions for
/// CometBFT, as the development node does for itself.
///
/// # Errors
/// A variable is wrong, no socket is inherited, or the file of its blocks cannot be opened.
pub async fn run_application(stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    let config = Config::read(Vec::new())?;
    let listener = inherited().map_err(|error| {
        NodeError::Configuration(format!(
            "no socket for the node ({error}); let `mesh up` start the application"
        ))
    })?;
    let Settings { network, file, checks, .. } = config.settings;
    let application = Application::open(network, &file, checks).await.map_err(|error| {
        let error = error_chain(&error);
        failed!("the chain file cannot be opened ({error}); restart the mesh")
    })?;
    tracing::info!(height = *application.heights().borrow(), "the application answers");
    tokio::select! {
        never = serve_application(listener, application) => match never {},
        () = stop => Ok(()),
    }
}

fn inherited() -> io::Result<TcpListener> {
    let listener = ListenFd::from_env().take_tcp_listener(0)?;
    let listener = listener.ok_or_else(|| io::Error::other("none is inherited"))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
