//! Section "sealing": sealing one segment with all its members, compared with psql and gzip on the same rows.
//! All processes are pinned to one core.

use std::{path::Path, process::Command};

use mesh::{failure::Failure, processes::POSTGRES, terminal::print_line};
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
        meter::{Meter, Round},
        postgres_client::{self, PostgresClient},
        section::Section,
        sections::SectionName,
    },
    BLOCKS, Fixture, HASH, filling, psql,
};
use crate::private::Servers;

/// Trades of all blocks, with unique hashes, and with repeating parties, orders and markets.
const FILL: &str = "INSERT INTO trades
    SELECT time + n % $1 * interval '1 microsecond', hash('transaction', n / 2), time, n % $1, hash('trade', n),
        hash('market', n % 20), 97000000 + n * 7919 % 1000003, 1 + n * 104729 % 900000,
        hash('party', n * 31 % 1000), hash('party', n * 37 % 1009), 1 + n % 2, hash('order', n),
        hash('order', -1 - n), 1, n % 1000, n % 500, n % 500, 0, 0, 0, 0, 0
    FROM (
        SELECT n, timestamptz '2023-01-18 00:00:00+00' + (1 + n / $1) * interval '1 second' AS time
        FROM generate_series(0, $2 - 1) AS n
    ) AS numbers";

/// Fills in the trades to seal.
pub(super) async fn fill(servers: &Servers, rows: u64) -> Result<(), Failure> {
    print_line(&format!("filling in {rows} trades"));
    // Their candles are not needed, and would take long to compute.
    let without_candles = "ALTER TABLE trades DISABLE TRIGGER USER";
    let statements = [without_candles, HASH, &filling(FILL, rows), "VACUUM ANALYZE trades", "CHECKPOINT"];
    servers.execute("fill in trades", &statements).await
}

/// Runs the comparison.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let psql = PostgresClient::find(&fixture.servers, "psql")?;
    let Some(psql) = psql.filter(|_| postgres_client::runs(Command::new("gzip"))) else {
        return Ok(Section::skipped(SectionName::Sealing, "there is no psql or no gzip"));
    };
    print_line("sealing a segment");
    let [server] = &fixture.mesh.watch(&[POSTGRES])[..] else {
        return Err(Failure::failed("there is no database server"));
    };
    let (rows, watched, server) = (fixture.rows, server.clone(), server.clone());
    let (url, root) = (fixture.servers.database_url.clone(), fixture.mesh.home.root().join("sealing"));
    let sides = comparison::run_rounds([
        Side::blocking("sealing, all members", ROWS, move || {
            on_one_core(&watched, || seal(&url, &root, rows, &watched))
        }),
        Side::blocking("psql COPY | gzip -1", ROWS, move || {
            on_one_core(&server, || copy(&psql, rows, &server))
        }),
    ])
    .await?;
    let title = format!("{rows} trades, database and all on one core");
    let found = sides[0].rate_to(&sides[1], "rows");
    Ok(comparison::section(SectionName::Sealing, &title, &sides, &[found]))
}

/// Pins this thread, the processes that it starts, and new backends of the database server to one core while
/// `what` runs.
fn on_one_core<T>(server: &MeasuredProcess, what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let said = |error: rustix::io::Errno| format!("cannot stay on one core: {error}");
    let server = Pid::from_raw(server.pid.cast_signed());
    let all = sched_getaffinity(None).map_err(said)?;
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap_or_default();
    one.set(first);
    sched_setaffinity(None, &one).map_err(said)?;
    sched_setaffinity(server, &one).map_err(said)?;
    let done = what();
    sched_setaffinity(server, &all).map_err(said)?;
    sched_setaffinity(None, &all).map_err(said)?;
    done
}

/// Seals into a separate segment store, as the service does.
fn seal(database_url: &str, root: &Path, rows: u64, server: &MeasuredProcess) -> Result<Round, String> {
    let said = |error: std::io::Error| format!("cannot seal: {error}");
    let scratch = root.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(said)?;
    let segments = SegmentStore::open(&root.to_string_lossy(), Deadlines::default());
    let sealing = Sealing {
        database_url: database_url.to_owned(),
        segments: segments.map_err(|error| error.to_string())?,
        rules: Rules { interval_blocks: BLOCKS.cast_signed(), retention_blocks: 0 },
        scratch,
        metrics: Metrics::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(said)?;
    let (meter, own_us) = (Meter::start(std::slice::from_ref(server)), cost::own_cpu_us().unwrap_or(0));
    let sealed = runtime.block_on(sealing.run(Until::Complete)).map_err(|error| error.to_string())?;
    let own_us = cost::own_cpu_us().unwrap_or(0) - own_us;
    let spent = meter.stop(own_us);
    let held = runtime.block_on(sealing.segments.list()).map_err(|error| error.to_string())?;
    let found = held.segments.first().and_then(|segment| Some(segment.history("trades")?.rows));
    std::fs::remove_dir_all(root).map_err(said)?;
    match sealed {
        Sealed::Here(names) if names.len() == 1 && found == Some(rows) => {
            Ok(Round { amount: rows, spent, own_us: vec![("sealing", own_us)], ..Round::default() })
        }
        _ => Err(format!("{rows} trades were to be sealed, there are {found:?}")),
    }
}

/// Runs psql and gzip over the same blocks.
fn copy(psql: &PostgresClient, rows: u64, server: &MeasuredProcess) -> Result<Round, String> {
    let statements = [
        "SET mesh.time_from = '2023-01-18 00:00:00+00'",
        "SET mesh.time_to = '2023-01-18 01:00:00+00'",
        &history_statement("trades", &["synthetic_time".to_owned()]),
    ];
    let ended = || cost::ended_children_cpu_us().unwrap_or(0);
    let (meter, before_us) = (Meter::start(std::slice::from_ref(server)), ended());
    psql::gzip(psql, &statements)?;
    let own_us = ended() - before_us;
    let own = vec![("psql and gzip", own_us)];
    Ok(Round { amount: rows, spent: meter.stop(own_us), own_us: own, ..Round::default() })
}
