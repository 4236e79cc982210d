//! `mesh node`: the consensus node of a mesh whose services run elsewhere. It fills an empty database, which another
//! job migrates, and continues its newest block; later blocks reach the database through `ingest`. The development node
//! logs to standard error; CometBFT and its application log into the home.

use std::time::Duration;

use mesh_chassis::StopSignals;
use mesh_launcher::{home::Home, limit_logs};
use mesh_loader::migrate::pending;
use mesh_node::{CometbftNode, DemoNetwork, prepare_devnode, run_devnode_in, watch_cometbft};
use mesh_problem::error_chain;
use tokio::time::{sleep, timeout};

use super::{backing, data};
use crate::{
    cli::{Consensus, NodeArgs},
    failure::Failure,
    init_node_log, programs, signals,
    terminal::print_line,
};

/// Timeout of the migration, which may seal history first.
const MIGRATED_WITHIN: Duration = Duration::from_secs(3600);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn node(args: NodeArgs) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let url = args.database.url()?;
    let initial_data = data::InitialData {
        postgres: Some(&url),
        load: args.load.as_deref(),
        is_followed: false,
        demo: &args.demo,
    };
    data::check(&initial_data)?;
    let home = args.home.home()?;
    home.create()?;
    let _lock = home.lock()?;
    let filling = async {
        until_migrated(&url).await?;
        let demo = data::fill(&home, &url, &initial_data).await?;
        if args.consensus == Consensus::Devnode {
            prepare_devnode(&home, &url, demo).await?;
            return Ok::<_, Failure>(None);
        }
        Ok(demo)
    };
    let demo = tokio::select! {
        demo = filling => demo?,
        () = signals.stop() => return Ok(()),
    };
    match args.consensus {
        Consensus::Devnode => {
            init_node_log();
            Ok(run_devnode_in(&home, args.listen, signals.stop()).await?)
        }
        Consensus::Cometbft => run_cometbft(&args, &url, &home, demo, &mut signals).await,
    }
}

/// Waits for the newest schema, which `mesh migrate` applies, possibly after sealing the history.
async fn until_migrated(url: &str) -> Result<(), Failure> {
    let mut is_reported = false;
    let waiting = async {
        loop {
            let why = match pending(url).await {
                Ok(state) if state.is_ready() => return,
                Ok(_) => "it is not migrated".to_owned(),
                Err(error) => error_chain(&error),
            };
            if !std::mem::replace(&mut is_reported, true) {
                print_line(&format!("waiting for the database: {why}"));
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(MIGRATED_WITHIN, waiting).await.map_err(|_| {
        Failure::missing("the database has not the newest schema; bring it there with `mesh migrate`")
    })
}

async fn run_cometbft(
    args: &NodeArgs,
    url: &str,
    home: &Home,
    demo: Option<DemoNetwork>,
    signals: &mut StopSignals,
) -> Result<(), Failure> {
    let node = CometbftNode::reserve(Some(args.listen))?;
    let supervisor = backing::supervisor()?;
    let run = async {
        let after_hash = node.prepare(home, url, demo).await?;
        if !after_hash.is_empty() {
            print_line(&format!("ingest needs {}={after_hash}", super::AFTER_HASH));
        }
        for group in node.groups(&programs::own()?, home, Vec::new()) {
            supervisor.add(group, 1)?;
        }
        print_line(&format!("CometBFT answers on {}", args.listen));
        match watch_cometbft(&supervisor).await {}
    };
    let outcome = tokio::select! {
        outcome = run => outcome,
        never = limit_logs(home.logs()) => match never {},
        () = signals.stop() => Ok(()),
    };
    supervisor.shutdown().await;
    outcome
}
