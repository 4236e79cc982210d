//! `mesh node`: the consensus node of a mesh whose services run elsewhere, with what it needs in the database.
//!
//! Comes in: a database that may be empty. Goes out: a node that answers, and its blocks in the database. What the
//! development node says goes to standard error; CometBFT and its application have their logs in the home.

use mesh_launcher::RestartRule;
use mesh_launcher::home::Home;
use mesh_launcher::supervisor::Supervisor;

use super::{backing, cometbft, data, say};
use crate::cli::{Consensus, NodeArgs};
use crate::devnode;
use crate::failure::{Failure, with_causes};
use crate::migrate::migrate;
use crate::signals::Signals;

/// Runs until it is asked to stop.
pub(crate) async fn node(args: NodeArgs) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    let url = args.database.url()?;
    let filling = data::Filling { postgres: Some(&url), load: args.load.as_deref(), demo: &args.demo };
    data::check(&filling)?;
    let home = args.home.home()?;
    home.create().map_err(|error| Failure::failed(error.to_string()))?;
    let _lock = home.lock().map_err(|error| Failure::failed(error.to_string()))?;
    let held = async {
        backing::reach_postgres(&url).await?;
        migrate(&url, None).await?;
        data::fill(&home, &url, &filling).await?.variables(&home)
    };
    let told = tokio::select! {
        told = held => told?,
        () = signals.stop() => return Ok(()),
    };
    match args.consensus {
        Consensus::Devnode => {
            // Watches signals itself.
            drop(signals);
            devnode::run_here(&url, args.listen, &home, told).await
        }
        Consensus::Cometbft => run_cometbft(&args, &url, &home, told, &mut signals).await,
    }
}

async fn run_cometbft(
    args: &NodeArgs,
    url: &str,
    home: &Home,
    told: Vec<(String, String)>,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("cannot tell where this program lies ({error}); start it by its path"))
    })?;
    let place = cometbft::Place::take(Some(args.listen))?;
    let supervisor = Supervisor::new(RestartRule::default())
        .map_err(|error| Failure::failed(format!("cannot watch processes ({})", with_causes(&error))))?;
    let run = async {
        for group in place.groups(&program, home, url, told, Vec::new()).await? {
            supervisor.add(group, 1).map_err(|error| Failure::failed(error.to_string()))?;
        }
        say(&format!("CometBFT answers on {}", args.listen));
        match cometbft::watch(&supervisor).await {}
    };
    let outcome = tokio::select! {
        outcome = run => outcome,
        () = signals.stop() => Ok(()),
    };
    supervisor.shutdown().await;
    outcome
}
