//! Section "sealing": sealing one segment with all its members, compared with psql and gzip on the same rows.
//! All processes are pinned to one core.

use std::path::Path;

use mesh::{failure::Failure, processes::POSTGRES};
use mesh_export::{Metrics, Rules, Sealed, Sealing, Until, history_statement};
use mesh_history::{Deadlines, SegmentStore};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use super::{
    super::{
        comparison::{self, ROWS, Side},
        cost::{self, MeasuredProcess},
        meter::Round,
        postgres_client::{PostgresClient, require},
        section::Figures,
        world::World,
    },
    BLOCKS, fill,
};
/// Trades of all blocks.
const FILL: &str = include_str!("../../../sql/trades.sql");

/// Runs the comparison.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?;
    require("gzip")?;
    let rows = world.args.rows;
    world.history().await?;
    fill(world, "trades", FILL).await?;
    let watched = world.mesh.watch(&[POSTGRES]);
    let (url, root) = (world.servers.database_url.clone(), world.mesh.home.root().join("sealing"));
    let server = watched.clone();
    let sides = comparison::run_rounds([
        Side::blocking("sealing, all members", ROWS, move || {
            on_one_core(&watched, || seal(&url, &root, rows, &watched))
        }),
        Side::blocking("psql COPY | gzip -1", ROWS, move || {
            on_one_core(&server, || copy(&psql, rows, &server))
        }),
    ])
    .await?;
    let found = vec![sides[0].rate() / sides[1].rate()];
    Ok(comparison::figures(&format!("{rows} trades, database and all on one core"), &sides, found))
}

/// Pins this thread, the processes that it starts, and new backends of the database server to one core while
/// `what` runs.
fn on_one_core<T>(server: &[MeasuredProcess], what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let error_text = |error: rustix::io::Errno| format!("cannot stay on one core: {error}");
    let server = server.first().and_then(|server| Pid::from_raw(server.pid.cast_signed()));
    let all = sched_getaffinity(None).map_err(error_text)?;
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap_or_default());
    let pin = |cores| sched_setaffinity(None, cores).and_then(|()| sched_setaffinity(server, cores));
    pin(&one).map_err(error_text)?;
    let done = what();
    pin(&all).map_err(error_text)?;
    done
}

/// Seals into a separate segment store, as the service does.
fn seal(database_url: &str, root: &Path, rows: u64, server: &[MeasuredProcess]) -> Result<Round, String> {
    let error_text = |error: std::io::Error| format!("cannot seal: {error}");
    let scratch = root.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(error_text)?;
    let segments = SegmentStore::open(&root.to_string_lossy(), Deadlines::default());
    let sealing = Sealing {
        database_url: database_url.to_owned(),
        segments: segments.map_err(|error| error.to_string())?,
        rules: Rules { interval_blocks: BLOCKS.cast_signed(), retention_blocks: 0 },
        scratch,
        metrics: Metrics::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(error_text)?;
    let round = Round::of(("sealing", cost::process_us), server, || {
        let sealed = runtime.block_on(sealing.run(Until::Complete)).map_err(|error| error.to_string())?;
        let is_one = matches!(sealed, Sealed::Here(names) if names.len() == 1);
        if is_one { Ok(rows) } else { Err("not one segment was sealed".to_owned()) }
    });
    let stored = runtime.block_on(sealing.segments.list()).map_err(|error| error.to_string())?;
    let found = stored.segments.first().and_then(|segment| Some(segment.history("trades")?.rows));
    std::fs::remove_dir_all(root).map_err(error_text)?;
    if found == Some(rows) {
        round
    } else {
        Err(format!("{rows} trades were to be sealed, there are {found:?}"))
    }
}

/// Runs psql and gzip over the same blocks.
fn copy(psql: &PostgresClient, rows: u64, server: &[MeasuredProcess]) -> Result<Round, String> {
    let statements = [
        "SET mesh.time_from = '2023-01-18 00:00:00+00'",
        "SET mesh.time_to = '2023-01-18 01:00:00+00'",
        &history_statement("trades", &["synthetic_time".to_owned()]),
    ];
    Round::of(("psql and gzip", cost::children_us), server, || psql.gzip(&statements).map(|()| rows))
}
