//! The development node: a process of its own that keeps the chain of a mesh growing, a block about every second, and
//! answers as a consensus node does.
//!
//! Comes in: where the database is, and what lives in it, by variables; transactions over its RPC. Goes out: new
//! blocks; on the demo network with everything that happens in them, otherwise empty ones.

mod config;
mod follow;
mod grow;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mesh_launcher::home::Home;
use mesh_launcher::process::ProcessSpec;
use mesh_launcher::supervisor::{Group, Tier};
use mesh_launcher::{Ready, Recipe};
use tokio::sync::watch;

use crate::cli::DEVNODE;
use crate::failure::Failure;
use crate::signals::Signals;

use config::Config;
pub(crate) use config::{DATABASE_URL, DEMO_PLAN, DEMO_STATE};

/// How long it has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How it is started and kept: this program again, at work on a database. It answers on `listen`, else on any free
/// port; `more` is for what only some give it.
pub(crate) fn group(
    program: impl Into<PathBuf>,
    home: &Home,
    database_url: &str,
    listen: Option<SocketAddr>,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = ProcessSpec::new(format!("{DEVNODE}-0"), program, home.log(DEVNODE, 0))
        .arg(DEVNODE)
        .env(DATABASE_URL, database_url)
        .env(config::FILE, home.node().join("blocks").to_string_lossy());
    if let Some(listen) = listen {
        spec = spec.env(config::LISTEN, listen.to_string());
    }
    spec.env.extend(more);
    spec.grace = GRACE;
    let ready = listen.map_or(Ready::Spawned, |listen| Ready::probe(move || answers(listen)));
    let recipe = Recipe { spec, ready };
    Group {
        name: DEVNODE.to_owned(),
        tier: Tier::Node,
        scalable: false,
        recipe: Box::new(move |_, _| recipe.clone()),
    }
}

/// Whether the RPC answers.
async fn answers(listen: SocketAddr) -> bool {
    let Ok(client) = reqwest::Client::builder().no_proxy().build() else { return false };
    let asked = client.get(format!("http://{listen}/health")).send().await;
    asked.is_ok_and(|answer| answer.status().is_success())
}

/// Runs until asked to stop. A database that went away is waited for.
pub(crate) async fn run() -> Result<(), Failure> {
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_max_level(tracing::Level::INFO).init();
    let mut signals = Signals::watch()?;
    let config = Config::read()?;
    // Says that the store has got a block.
    let written = watch::Sender::new(());
    let seen = written.subscribe();
    tokio::select! {
        outcome = grow::write(&config, &mut signals, &written) => outcome,
        failure = follow::answer(&config, seen) => Err(failure),
    }
}
