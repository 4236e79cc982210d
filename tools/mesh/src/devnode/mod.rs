//! The development node: a process that adds a block to the chain of a mesh about every second and serves a
//! consensus node's RPC.
//!
//! Comes in: the database and its content (demo network or loaded data), by variables; transactions over the
//! RPC. Goes out: new blocks, with all rows of a block on the demo network, else empty.
//!
//! With a real consensus node its application runs instead, which writes the blocks that the node decides.

mod application;
mod config;
mod decided;
mod follow;
mod grow;

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use config::Config;
pub(crate) use config::{DATABASE_URL, DEMO_PLAN, DEMO_STATE};
use listenfd::ListenFd;
use mesh_launcher::{
    Ready, ReplicaSpec,
    home::Home,
    process::ProcessSpec,
    supervisor::{Group, Tier},
};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    failure::Failure,
    http::local_client,
    processes::{APPLICATION, DEVNODE},
    signals::Signals,
};

/// How long the process has to end after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// The supervised process: this program with a hidden command, working on a database. It answers on `listen`,
/// else on any free port; `more` are further variables.
pub fn group(
    program: impl Into<PathBuf>,
    home: &Home,
    database_url: &str,
    listen: Option<SocketAddr>,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = spec(DEVNODE, program, home, database_url, &home.node().join("blocks"));
    if let Some(listen) = listen {
        spec = spec.env(config::LISTEN, listen.to_string());
    }
    spec.env.extend(more);
    let ready = listen.map_or(Ready::Spawned, |listen| Ready::probe(move || answers(listen)));
    Group::single(DEVNODE, Tier::Node, ReplicaSpec { spec, ready })
}

/// The supervised process of a real node's application. The node connects over an inherited socket, and the
/// blocks are stored in a file.
pub(crate) fn application_group(
    program: impl Into<PathBuf>,
    home: &Home,
    database_url: &str,
    file: &Path,
    socket: Arc<OwnedFd>,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = spec(APPLICATION, program, home, database_url, file);
    spec.sockets.push(("abci".to_owned(), socket));
    spec.env.extend(more);
    Group::single(APPLICATION, Tier::Application, ReplicaSpec { spec, ready: Ready::Spawned })
}

fn spec(
    name: &str,
    program: impl Into<PathBuf>,
    home: &Home,
    database_url: &str,
    file: &Path,
) -> ProcessSpec {
    let mut spec = ProcessSpec::new(format!("{name}-0"), program, home.log(name, 0))
        .arg(name)
        .env(DATABASE_URL, database_url)
        .env(config::FILE, file.to_string_lossy());
    spec.grace = GRACE;
    spec
}

/// Whether the RPC answers.
async fn answers(listen: SocketAddr) -> bool {
    let Ok(client) = local_client().build() else { return false };
    let response = client.get(format!("http://{listen}/health")).send().await;
    response.is_ok_and(|answer| answer.status().is_success())
}

/// Runs until a stop signal. Retries while the database is unreachable.
pub(crate) async fn run() -> Result<(), Failure> {
    init_log();
    run_with(&Config::read(Vec::new())?).await
}

/// Runs the node in this process for a home, with further `variables`.
pub(crate) async fn run_here(
    database_url: &str,
    listen: SocketAddr,
    home: &Home,
    mut variables: Vec<(String, String)>,
) -> Result<(), Failure> {
    init_log();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    set(DATABASE_URL, database_url.to_owned());
    set(config::LISTEN, listen.to_string());
    set(config::FILE, home.node().join("blocks").to_string_lossy().into_owned());
    run_with(&Config::read(variables)?).await
}

async fn run_with(config: &Config) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    // Signals each block that is stored.
    let written = watch::Sender::new(());
    let new_blocks = written.subscribe();
    tokio::select! {
        outcome = grow::write(config, None, &mut signals, &written) => outcome,
        failure = follow::answer(config, new_blocks) => Err(failure),
    }
}

/// Runs the application of a real node until a stop signal.
pub(crate) async fn run_application() -> Result<(), Failure> {
    init_log();
    let mut signals = Signals::watch()?;
    let config = Config::read(Vec::new())?;
    let listener = inherited().map_err(|error| {
        Failure::configuration(format!(
            "no socket for the node ({error}); let `mesh up` start the application"
        ))
    })?;
    application::run(&config, listener, &mut signals).await
}

fn inherited() -> io::Result<TcpListener> {
    let listener = ListenFd::from_env().take_tcp_listener(0)?;
    let listener = listener.ok_or_else(|| io::Error::other("none is inherited"))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn init_log() {
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_max_level(tracing::Level::INFO).init();
}
