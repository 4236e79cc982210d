//! `mesh seal`: seals complete segments now, as the replicas of `export` do when blocks arrive.
//!
//! The configuration is that of the running mesh's `export` replicas. When no mesh runs, the home's private
//! database server is started for the duration of the command; without such a server the configuration is the
//! environment of the command.

use std::time::Duration;

use mesh_export::{Sealed, Sealing, Until};
use mesh_history::Segment;
use mesh_launcher::{
    control::{Answer, ControlError, Request, ask},
    home::Home,
    services::{SCRATCH, configures_services},
};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::{
    cli::SealArgs,
    control::unexpected,
    failure::{Failure, cannot, failed},
    signals::run_until_stopped,
    terminal::{print, print_json, print_line},
    up::backing,
};

/// How long to wait for another process that is sealing.
const OTHER_WRITER_LIMIT: Duration = Duration::from_secs(600);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

const DATABASE: &str = "MESH_DATABASE_URL";
const HISTORY: &str = "MESH_HISTORY_URL";

/// What a stop signal says.
const INTERRUPTED: &str = "interrupted; segments sealed before are kept";

/// A sealed segment, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SegmentRow {
    segment: String,
    id: String,
    height_from: u64,
    height_to: u64,
    pub(crate) rows: u64,
    bytes: u64,
}

impl SegmentRow {
    pub(crate) fn of(segment: &Segment) -> Self {
        Self {
            segment: segment.name.to_string(),
            id: segment.id.to_string(),
            height_from: segment.height_from,
            height_to: segment.height_to,
            rows: segment.members.iter().map(|member| member.rows).sum(),
            bytes: segment.length,
        }
    }
}

/// Seals every complete span that is not sealed yet.
pub(crate) async fn seal(args: &SealArgs) -> Result<(), Failure> {
    let variables = if let Some(url) = &args.postgres {
        backing::reach_postgres(url).await?;
        let root = match &args.history {
            Some(root) => root.clone(),
            None => args.home.home()?.root().to_string_lossy().into_owned(),
        };
        variables(url, &root)
    } else {
        let home = args.home.home()?;
        match ask(&home, &Request::Environment { name: "export".to_owned() }).await {
            Ok(Answer::Environment { variables }) => variables,
            Ok(Answer::Refused { reason }) => return Err(Failure::failed(reason)),
            Ok(other) => return Err(unexpected(&other)),
            Err(ControlError::NotRunning(_))
                if !home.postgres().exists() && std::env::var_os(DATABASE).is_some() =>
            {
                own_variables().collect()
            }
            Err(ControlError::NotRunning(_)) => return alone(args, &home).await,
            Err(error) => return Err(error.into()),
        }
    };
    run_until_stopped(run(args, variables), INTERRUPTED).await
}

/// Starts the database server of a home in which no mesh runs, and seals.
async fn alone(args: &SealArgs, home: &Home) -> Result<(), Failure> {
    let root = home.root().display();
    if !home.postgres().exists() {
        return Err(failed!(
            "there is no database in {root}; start a mesh with `mesh up --home {root}`, or give one with --postgres \
             or {DATABASE}"
        ));
    }
    home.create()?;
    let _lock = home.lock()?;
    let state = home.saved_state()?;
    if let Some(database) = state.database {
        return Err(failed!(
            "the mesh of {root} uses the database at {database}; give its address with --postgres"
        ));
    }
    let supervisor = backing::supervisor()?;
    let work = async {
        let programs = backing::programs(home, true, false).await?;
        let programs = programs.postgres.ok_or_else(|| Failure::missing("PostgreSQL is needed"))?;
        let database = backing::start_postgres(home, &supervisor, &programs, &[]).await?;
        run(args, variables_of_home(database.url(), home)).await
    };
    let outcome = run_until_stopped(work, INTERRUPTED).await;
    supervisor.shutdown().await;
    outcome
}

async fn run(args: &SealArgs, mut variables: Vec<(String, String)>) -> Result<(), Failure> {
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    if let Some(root) = &args.history {
        set(HISTORY, root.clone());
    }
    if let Some(interval) = args.interval {
        set("MESH_HISTORY_INTERVAL_BLOCKS", interval.to_string());
    }
    let sealing = Sealing::configured(variables).map_err(Failure::configuration)?;
    let until = if args.newest { Until::Newest } else { Until::Complete };
    let mut rows = Vec::new();
    let mut printed = Ok(());
    let mut on_sealed = |segment: &Segment| {
        let row = SegmentRow::of(segment);
        if !args.json && printed.is_ok() {
            printed = print(&format!("sealed {}: {} rows, id {}", row.segment, row.rows, row.id));
        }
        rows.push(row);
    };
    let sealed = seal_in_turn(&sealing, until, &mut on_sealed).await;
    if args.json {
        print_json(&rows)?;
    } else if rows.is_empty() && sealed.is_ok() {
        print("nothing to seal")?;
    }
    sealed.and(printed)?;
    match sealing.fault().await.map_err(|error| cannot("list the segments", &error))? {
        None => Ok(()),
        Some(fault) => Err(failed!("the sealed history is not whole: {fault}")),
    }
}

/// Seals, retrying for up to [`OTHER_WRITER_LIMIT`] while another process is sealing. `on_sealed` is called
/// for each sealed segment.
pub(crate) async fn seal_in_turn(
    sealing: &Sealing,
    until: Until,
    on_sealed: &mut (dyn FnMut(&Segment) + Send),
) -> Result<(), Failure> {
    let deadline = Instant::now() + OTHER_WRITER_LIMIT;
    let mut is_waiting = false;
    loop {
        match sealing.run_telling(until, on_sealed).await? {
            Sealed::Here(_) => return Ok(()),
            Sealed::Elsewhere if Instant::now() >= deadline => {
                return Err(Failure::failed("another writer is still sealing; try again when it is done"));
            }
            Sealed::Elsewhere if !is_waiting => {
                is_waiting = true;
                print_line("another writer is sealing; waiting until it is done");
            }
            Sealed::Elsewhere => {}
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Seals every complete span of a database with the variables of an `export` replica, and prints progress. A
/// failure, or a history that is not whole, is printed only, because a mesh can start without: reads do not need
/// the history, and the replicas retry and log the cause.
pub(crate) async fn seal_complete(database_url: &str, variables: Vec<(String, String)>) {
    let sealed = async {
        let sealing = Sealing::configured(variables).map_err(Failure::configuration)?;
        let client = mesh_store::connect(database_url, "mesh").await?;
        let newest = client.query_one("SELECT max(height) FROM blocks", &[]).await;
        let newest: Option<i64> =
            newest.map_err(|error| cannot("see how long the history is", &error))?.get(0);
        let mut on_sealed = |segment: &Segment| {
            let (height, newest) = (segment.height_to, newest.unwrap_or_default());
            print_line(&format!("sealing the history: block {height} of {newest}"));
        };
        seal_in_turn(&sealing, Until::Complete, &mut on_sealed).await?;
        sealing.fault().await.map_err(|error| cannot("list the segments", &error))
    };
    match sealed.await {
        Ok(None) => {}
        Ok(Some(fault)) => print_line(&format!("the sealed history is not whole: {fault}")),
        Err(failure) => print_line(&format!("the history is not sealed or not checked yet: {failure}")),
    }
}

/// The variables of this process that configure services.
fn own_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| configures_services(name))
}

/// The same for the history of a home, whose segments are made in the home, too.
pub(crate) fn variables_of_home(url: &str, home: &Home) -> Vec<(String, String)> {
    let scratch = (SCRATCH.to_owned(), home.run().to_string_lossy().into_owned());
    std::iter::once(scratch).chain(variables(url, &home.root().to_string_lossy())).collect()
}

/// The variables of this process that configure services, with this database and history: an `export` replica's environment.
pub(crate) fn variables(url: &str, root: &str) -> Vec<(String, String)> {
    // `url` contains the password already.
    let own = own_variables().filter(|(name, _)| name != "MESH_DATABASE_PASSWORD_FILE");
    own.chain([(DATABASE.to_owned(), url.to_owned()), (HISTORY.to_owned(), root.to_owned())]).collect()
}
