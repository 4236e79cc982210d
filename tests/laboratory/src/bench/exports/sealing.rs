//! Section "sealing": sealing one segment with all its members, compared with psql and gzip on the same rows.
//! All processes are pinned to one core.

use std::{path::Path, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_export::{Metrics, Rules, Sealed, Sealing, Until, history_statement};
use mesh_history::{Deadlines, SegmentStore};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use tokio_postgres::Client;

use super::{
    super::{
        Section,
        bar::{Bar, Bound},
        comparison::ROUNDS,
        cost::{self, MeasuredProcess},
        meter::Meter,
        transfer::{self, ROWS, Transfer, TransferRound},
    },
    BLOCKS, Fixture,
    psql::{self, Psql},
    run_blocking,
};

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

/// A function for ids like those of the network, in the session's temporary schema.
const HASH: &str = "CREATE OR REPLACE FUNCTION pg_temp.hash(text, int8) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT encode(sha256(($1 || $2)::bytea), 'hex') $$";

/// Runs a statement that uses `hash`, with `$1` replaced by the rows of a block and `$2` by the rows in all.
pub(super) async fn fill_by(database: &Client, statement: &str, rows: u64) -> Result<(), Failure> {
    let of_block = rows.div_ceil(BLOCKS);
    let statement = statement.replace("hash(", "pg_temp.hash(");
    let statement =
        statement.replace("$1", &format!("{of_block}::int8")).replace("$2", &format!("{rows}::int8"));
    for statement in [HASH, &statement] {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in rows", &error))?;
    }
    Ok(())
}

/// Fills in the trades to seal.
pub(super) async fn fill(database: &Client, rows: u64) -> Result<(), Failure> {
    print_line(&format!("filling in {rows} trades"));
    let run = async |statement: &str| {
        database.batch_execute(statement).await.map_err(|error| cannot("fill in trades", &error))
    };
    // Their candles are not needed, and would take long to compute.
    run("ALTER TABLE trades DISABLE TRIGGER USER").await?;
    fill_by(database, FILL, rows).await?;
    run("VACUUM ANALYZE trades").await?;
    run("CHECKPOINT").await
}

/// Runs the comparison.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let psql = Psql::find(&fixture.servers)?;
    if !run_blocking({
        let psql = psql.clone();
        move || Ok(psql.runs() && psql::gzip_runs())
    })
    .await?
    {
        return Ok(Section::skipped("sealing", "there is no psql or no gzip"));
    }
    print_line("sealing a segment");
    let [server] = &fixture.mesh.watch(&[POSTGRES])[..] else {
        return Err(Failure::failed("there is no database server"));
    };
    let mut sides = [
        Transfer::new("sealing, all members", ROWS, vec![server.clone()]),
        Transfer::new("psql COPY | gzip -1", ROWS, vec![server.clone()]),
    ];
    let rows = fixture.rows;
    for _ in 0..ROUNDS {
        let (url, root) = (fixture.servers.database_url.clone(), fixture.mesh.home.root().join("sealing"));
        let watched = server.clone();
        sides[0].add(run_blocking(move || on_one_core(&watched, || seal(url, &root, rows, &watched))).await?);
        let (psql, watched) = (psql.clone(), server.clone());
        sides[1].add(run_blocking(move || on_one_core(&watched, || copy(&psql, rows, &watched))).await?);
    }
    let bar = Bar {
        what: format!("{} / {}, rows a second", sides[0].name(), sides[1].name()),
        found: sides[0].rate() / sides[1].rate(),
        bound: Bound::AtLeast(0.8),
        aim: 1.5,
    };
    let title = format!("sealing: {rows} trades, database and all on one core");
    let figures: Vec<_> = sides.iter().map(Transfer::figures).collect();
    Ok(Section::new("sealing", &transfer::tables(&title, &sides), &figures, &[bar]))
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
fn seal(
    database_url: String,
    root: &Path,
    rows: u64,
    server: &MeasuredProcess,
) -> Result<TransferRound, String> {
    let said = |error: std::io::Error| format!("cannot seal: {error}");
    let scratch = root.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(said)?;
    let segments = SegmentStore::open(&root.to_string_lossy(), Deadlines::default());
    let sealing = Sealing {
        database_url,
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
            Ok(TransferRound { amount: rows, spent, own_us: vec![("sealing", own_us)] })
        }
        _ => Err(format!("{rows} trades were to be sealed, there are {found:?}")),
    }
}

/// Runs psql and gzip over the same blocks.
fn copy(psql: &Psql, rows: u64, server: &MeasuredProcess) -> Result<TransferRound, String> {
    let statements = [
        "SET mesh.time_from = '2023-01-18 00:00:00+00'",
        "SET mesh.time_to = '2023-01-18 01:00:00+00'",
        &history_statement("trades", &["synthetic_time".to_owned()]),
    ];
    let ended = || cost::ended_children_cpu_us().map(Duration::from_micros).unwrap_or_default();
    let (meter, before) = (Meter::start(std::slice::from_ref(server)), ended());
    psql.gzip(&statements)?;
    let own_us = u64::try_from((ended() - before).as_micros()).unwrap_or(u64::MAX);
    Ok(TransferRound { amount: rows, spent: meter.stop(own_us), own_us: vec![("psql and gzip", own_us)] })
}
