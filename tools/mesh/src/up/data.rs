//! The content of a mesh's database: an empty one is filled once, a filled one stays as it is.

use std::path::Path;

use mesh_demo::{Plan, write_history};
use mesh_launcher::home::{Data, Home, SavedState};
use mesh_node::DemoNetwork;
use mesh_problem::error_chain;
use tokio_postgres::config::Host;

use crate::{
    cli::DemoArgs,
    failure::{Failure, cannot, failed},
    load::load_into,
    terminal::print_line,
};

/// What an empty database is filled with.
pub(super) struct InitialData<'a> {
    /// The address of a database that is not the home's own.
    pub(super) postgres: Option<&'a str>,
    /// The folder to load instead of the demo network.
    pub(super) load: Option<&'a Path>,
    /// Whether the blocks of a foreign node fill the database.
    pub(super) is_followed: bool,
    pub(super) demo: &'a DemoArgs,
}

/// Checks the options before any process starts.
pub(super) fn check(initial_data: &InitialData<'_>) -> Result<(), Failure> {
    if let Some(folder) = initial_data.load.filter(|folder| !folder.is_dir()).map(Path::display) {
        return Err(failed!("there is no folder {folder}; give the folder of the CSV files with --load"));
    }
    plan(initial_data.demo).check().map_err(|error| Failure::usage(format!("{error}; see `mesh up --help`")))
}

/// Fills the database when it is empty, or continues after an interrupted earlier run. Returns the demo network whose
/// history it has, if it has one.
pub(super) async fn fill(
    home: &Home,
    url: &str,
    initial_data: &InitialData<'_>,
) -> Result<Option<DemoNetwork>, Failure> {
    let database = initial_data.postgres.map(name_of);
    let mut state = home.saved_state()?;
    if state.data.is_none() && state.database != database && !home.postgres().exists() {
        // A start without it would begin another network in this home.
        state.database.clone_from(&database);
        home.save_state(&state)?;
    }
    // An earlier release wrote what follows the user.
    let earlier = initial_data.postgres.map(|url| url.rsplit_once('@').map_or(url, |(_, rest)| rest));
    let is_same = |state: &SavedState| state.database == database || state.database.as_deref() == earlier;
    let known = Some(state).filter(is_same);
    let store = Store { home, url, database };
    if !has_blocks(url).await? {
        return match initial_data.load {
            Some(folder) => store.load(folder).await,
            None if initial_data.is_followed => Ok(None),
            None => store.write_demo(plan(initial_data.demo)).await,
        };
    }
    if let Some(folder) = initial_data.load.map(Path::display) {
        print_line(&format!("keeping the data that is there; to load {folder}, give another --home"));
    }
    let Some(SavedState { data: Some(Data::Demo { settings }), complete, .. }) = known else {
        return Ok(None);
    };
    let plan: Plan = serde_json::from_value(settings).map_err(|error| {
        failed!(
            "the plan of the demo network in {}/mesh.json cannot be read ({error}); move this file away and start again with the same options: the data stays, and the network gets empty blocks",
            home.root().display()
        )
    })?;
    if with_options(initial_data.demo, &plan) != plan {
        print_line("keeping the demo network that is there; for another one, give another --home");
    }
    match complete {
        true => Ok(Some(DemoNetwork { plan, simulator: None })),
        false => store.write_demo(plan).await,
    }
}

/// A database to fill, and the home that stores what it was filled with.
struct Store<'a> {
    home: &'a Home,
    url: &'a str,
    database: Option<String>,
}

impl Store<'_> {
    /// Loads a folder, all of it or nothing.
    async fn load(&self, folder: &Path) -> Result<Option<DemoNetwork>, Failure> {
        load_into(self.url, folder).await?;
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self.save(Data::Loaded { folder }, true)?;
        Ok(None)
    }

    /// Writes the history of a demo network, continuing after an interrupted run.
    async fn write_demo(&self, plan: Plan) -> Result<Option<DemoNetwork>, Failure> {
        let settings = serde_json::to_value(&plan)?;
        self.save(Data::Demo { settings: settings.clone() }, false)?;
        let mut last_tenth = None;
        let progress = |done: u64, all: u64| {
            let tenth = done * 10 / all.max(1);
            if last_tenth != Some(tenth) {
                last_tenth = Some(tenth);
                print_line(&format!("writing the demo network: {done} of {all} blocks"));
            }
        };
        let simulator = write_history(self.url, &plan, progress)
            .await
            .map_err(|error| failed!("the demo network could not be written: {}", error_chain(&error)))?;
        self.save(Data::Demo { settings }, true)?;
        Ok(Some(DemoNetwork { plan, simulator: Some(simulator) }))
    }

    fn save(&self, data: Data, complete: bool) -> Result<(), Failure> {
        let (database, data) = (self.database.clone(), Some(data));
        let state = SavedState { database, data, complete, ..self.home.saved_state()? };
        Ok(self.home.save_state(&state)?)
    }
}

fn plan(args: &DemoArgs) -> Plan {
    let plan = with_options(args, &Plan::default());
    if args.demo_start.is_some() { plan } else { plan.ending_at(std::time::SystemTime::now()) }
}

/// A plan with what these options name of it.
fn with_options(args: &DemoArgs, plan: &Plan) -> Plan {
    Plan {
        seed: args.demo_seed.unwrap_or(plan.seed),
        blocks: args.demo_blocks.unwrap_or(plan.blocks),
        markets: args.demo_markets.unwrap_or(plan.markets),
        parties: args.demo_parties.unwrap_or(plan.parties),
        start_us: args.demo_start.map_or(plan.start_us, |seconds| i64::from(seconds) * 1_000_000),
        ..plan.clone()
    }
}

async fn has_blocks(url: &str) -> Result<bool, Failure> {
    const STEP: &str = "see what the database holds";
    let client = mesh_store::connect(url, "mesh").await.map_err(|error| cannot(STEP, &error))?;
    let row = client.query_one("SELECT EXISTS (SELECT FROM blocks)", &[]).await;
    Ok(row.map_err(|error| cannot(STEP, &error))?.get(0))
}

/// A database's name without user and password: `host:port/database`.
fn name_of(url: &str) -> String {
    let Ok(config) = url.parse::<tokio_postgres::Config>() else { return "?".to_owned() };
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(number, host)| {
        let host = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        };
        match ports.get(number).or(ports.first()) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    });
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{database}", hosts.collect::<Vec<_>>().join(","))
}
