//! Suite "exports": downloads of a stored history and of a ledger, and the sealing of history segments.
//!
//! Section "first-byte": an export of a thousand segments, from the request to the first byte of its body.
//! Section "splice": a stored export through edge and bus, compared with the bus server alone, and with
//! deflating its CSV again.
//! Section "sealing": sealing one segment with all its members, compared with psql and gzip on the same rows.
//! All processes are pinned to one core.

mod drain;
pub(super) mod ledger;
mod raw;
pub(super) mod scaled;

use std::{
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use flate2::{Compression, write::DeflateEncoder};
use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_export::{Metrics, Rules, Sealed, Sealing, Until, history_statement};
use mesh_history::{DEFAULT_LEVEL, SegmentStore};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use super::{
    comparison::{self, BYTES, REQUESTS, ROWS, Side},
    cost::{self, MeasuredProcess},
    load::Pace,
    meter::Round,
    postgres_client::{PostgresClient, require},
    section::Figures,
    world::World,
};
use crate::{
    rig::clients::{
        files::export_of,
        memory::{ProcessMemory, while_watched},
    },
    synthetic::{CHAIN_ID, Synthetic, WrittenHistory},
};

/// Number of segments in the part of the history with many.
const MANY: u64 = 1000;
/// Approximate bytes of a segment in the other part.
const LARGE_SEGMENT_BYTES: u64 = 20_000_000;
/// Approximate bytes of a row in a segment.
const ROW_BYTES: u64 = 250;
/// Blocks of a segment.
const BLOCKS: u64 = 1000;

/// The blocks of the first segment. With only these in the database, the export service has nothing to seal.
const FILL_BLOCKS: &str = include_str!("../../../sql/blocks.sql");

/// A stored history in two parts.
pub(super) struct History {
    /// A thousand small segments.
    many: WrittenHistory,
    /// As many bytes in large segments.
    few: WrittenHistory,
    few_segments: u64,
}

impl History {
    fn write(world: &World<'_>) -> Result<Self, Failure> {
        let (bytes, root) = (world.args.megabytes * 1_000_000 / 2, world.mesh.home.root());
        let synthetic = |segments: u64| {
            let rows = (bytes / segments / ROW_BYTES).max(1);
            Synthetic { segments, blocks: BLOCKS, rows }
        };
        let many = synthetic(MANY).write(root)?;
        let few_segments = bytes.div_ceil(LARGE_SEGMENT_BYTES);
        let few = synthetic(few_segments).write_after(Some(many), root)?;
        Ok(Self { many, few, few_segments })
    }
}

impl World<'_> {
    /// The stored history and the blocks of the database. The export service starts after them.
    async fn history(&self) -> Result<&History, Failure> {
        let write = async || {
            print_line(&format!("writing {} MB of history", self.args.megabytes));
            let history = tokio::task::block_in_place(|| History::write(self))?;
            let chain = format!("INSERT INTO chain (id) VALUES ('{CHAIN_ID}')");
            self.servers.execute("fill in blocks", &[FILL_BLOCKS, &chain]).await?;
            Ok(history)
        };
        self.history.get_or_try_init(write).await
    }
}

/// Path of the export of one part.
fn path(written: WrittenHistory) -> String {
    export_of(written.first_block, written.last_block)
}

/// Fills in `--rows` rows of a kind.
async fn fill(world: &World<'_>, what: &str, statements: &str) -> Result<(), Failure> {
    let rows = world.args.rows.to_string();
    print_line(&format!("filling in {rows} {what}"));
    let statements = statements.replace(":rows", &rows);
    world.servers.execute("fill in rows", &[&statements, "VACUUM ANALYZE", "CHECKPOINT"]).await
}

/// Time between two requests, so that data prefetched for the earlier one has arrived.
const PERIOD: Duration = Duration::from_millis(50);

/// Measures a range that was requested before.
pub(crate) async fn first_byte(world: &World<'_>) -> Result<Figures, Failure> {
    let many = world.history().await?.many;
    let edge = world.edges().await?.cached;
    drain::first_byte(edge, &path(many)).await.map_err(Failure::failed)?;
    let watched = world.mesh.watch(&["export", NATS, "edge"]);
    let pace = Pace { clients: 1, length: world.length(), period: Some(PERIOD) };
    let side = Side::blocking("warm layout", REQUESTS, move || {
        pace.run(&watched, async |_| {
            Ok(async move || drain::first_byte(edge, &path(many)).await.map(|_| true))
        })
    });
    let sides = comparison::run_rounds([side]).await?;
    let found = vec![sides[0].p50_ms()];
    Ok(comparison::figures(&format!("an export of {MANY} segments"), &sides, found))
}

/// Bytes of messages that are published repeatedly: more than the caches of a processor hold.
const PUBLISHED: usize = 64 << 20;
/// Rows of the CSV that is deflated repeatedly.
const DEFLATED_ROWS: u64 = 40_000;

pub(crate) async fn splice(world: &World<'_>) -> Result<Figures, Failure> {
    let history = world.history().await?;
    let few = path(history.few);
    let (edge, length, bus) = (world.edges().await?.cached, world.length(), world.servers.bus.clone());
    let (text, asked) = (csv()?, few.clone());
    let published = Bytes::from(vec![1; PUBLISHED]);
    let message = |number: usize| published.slice(number * raw::MESSAGE..(number + 1) * raw::MESSAGE);
    let messages: Vec<Bytes> = (0..PUBLISHED / raw::MESSAGE).map(message).collect();
    let stored = drain::first_byte(edge, &asked).await.map_err(Failure::failed)?;
    // CSV bytes per byte of the download.
    let inflation = history.few.plain as f64 / stored as f64;
    let watched = world.mesh.watch(&["export", NATS, "edge"]);
    let nats = world.mesh.watch(&[NATS]);
    let mut memory = ProcessMemory::of_all(world.mesh, &["edge", "export"]);
    let rounds = comparison::run_rounds([
        Side::blocking("export of large segments", BYTES, move || {
            drain::drain(edge, std::slice::from_ref(&few), &watched, length)
        }),
        Side::blocking("raw NATS, 512 KiB messages", BYTES, move || {
            raw::publish(&bus, &messages, &nats, length)
        }),
        Side::blocking("one-stream deflate (CSV bytes)", BYTES, move || deflate(&text, length)),
    ]);
    let sides = while_watched(&mut memory, rounds).await?;
    let [product, raw, deflate] = &sides;
    let grown_kib = memory.iter().map(ProcessMemory::grown).max();
    let grown_mib = grown_kib.map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    let found = vec![product.rate() / raw.rate(), product.rate() * inflation / deflate.rate(), grown_mib];
    let title = format!(
        "{:.0} MB of trades in {} segments, a byte of the export worth {inflation:.2} of CSV",
        stored as f64 / 1e6,
        history.few_segments,
    );
    Ok(comparison::figures(&title, &sides, found))
}

fn csv() -> Result<Bytes, Failure> {
    let mut text = Vec::new();
    let rows = Synthetic { segments: 1, blocks: 1, rows: DEFLATED_ROWS };
    rows.text(|piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(text.into())
}

/// Deflates the text repeatedly in one stream, as a member of a segment is deflated.
fn deflate(text: &[u8], length: Duration) -> Result<Round, String> {
    let until = Instant::now() + length;
    let mut deflate = DeflateEncoder::new(std::io::sink(), Compression::new(DEFAULT_LEVEL));
    Round::of(("deflate", cost::thread_us), &[], || {
        for piece in text.chunks(128 << 10).cycle().take_while(|_| Instant::now() < until) {
            deflate.write_all(piece).map_err(|error| error.to_string())?;
        }
        Ok(deflate.total_in())
    })
}

const TRADES: &str = include_str!("../../../sql/trades.sql");

pub(crate) async fn sealing(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?;
    require("gzip")?;
    let rows = world.args.rows;
    world.history().await?;
    fill(world, "trades", TRADES).await?;
    let watched = world.mesh.watch(&[POSTGRES]);
    let (url, root) = (world.servers.database.url().to_owned(), world.mesh.home.root().join("sealing"));
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
    let segments = SegmentStore::open(&root.to_string_lossy());
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
