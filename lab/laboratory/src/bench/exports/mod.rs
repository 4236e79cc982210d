//! Suite "exports": downloads of a stored history and of a ledger, and the sealing of history segments.

mod drain;
pub(super) mod first_byte;
pub(super) mod ledger;
mod psql;
mod raw;
pub(super) mod reads_beside_downloads;
pub(super) mod scaled;
pub(super) mod scaling;
pub(super) mod sealing;
pub(super) mod splice;

use std::time::Duration;

use mesh::{failure::Failure, processes::NATS, terminal::print_line};
use mesh_launcher::control::{Answer, Request};

use super::{baseline, cost::MeasuredProcess, load::Load, sections::SectionName, withdrawals};
use crate::{
    bench::args::BenchArgs,
    private::{Edges, Layout, PrivateMesh, Servers},
    synthetic::{CHAIN_ID, LargeTable, Synthetic, WrittenHistory},
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
const FILL_BLOCKS: &str = "INSERT INTO blocks (block_time, height, hash)
    SELECT timestamptz '2023-01-18 00:00:00+00' + n * interval '1 second', n, encode(sha256(n::text::bytea), 'hex')
    FROM generate_series(1, 1000) AS n";

/// A function for ids like those of the network, in the session's temporary schema.
const HASH: &str = "CREATE OR REPLACE FUNCTION pg_temp.hash(text, int8) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT encode(sha256(($1 || $2)::bytea), 'hex') $$";

/// Connections of the reads that are measured beside downloads, and the time between two requests of each:
/// 400 requests a second in all.
const READERS: u64 = 8;
const READ_PERIOD: Duration = Duration::from_millis(20);

/// The running mesh with its data.
pub(super) struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    servers: Servers,
    edges: Edges,
    history: History,
    /// Length of a round.
    length: Duration,
    /// Number of rows that are sealed, and of ledger entries, of which half are the party's.
    rows: u64,
}

/// A stored history in two parts.
struct History {
    /// A thousand small segments of orders.
    many: WrittenHistory,
    /// As many bytes in large segments of trades.
    few: WrittenHistory,
    few_segments: Synthetic,
}

impl History {
    fn write(mesh: &PrivateMesh, megabytes: u64) -> Result<Self, Failure> {
        let bytes = megabytes * 1_000_000 / 2;
        let synthetic = |table, segments: u64| Synthetic {
            table,
            segments,
            blocks: BLOCKS,
            rows: (bytes / segments / ROW_BYTES).max(1),
        };
        let many = synthetic(LargeTable::Orders, MANY).write(mesh.home.root())?;
        let few_segments = synthetic(LargeTable::Trades, bytes.div_ceil(LARGE_SEGMENT_BYTES));
        let few = few_segments.write_after(Some(many), mesh.home.root())?;
        Ok(Self { many, few, few_segments })
    }
}

/// Path of the export of one part, without its last `without` segments.
fn path(written: WrittenHistory, without: u64) -> String {
    format!(
        "/api/v2/networkhistory/export?table=TABLE_{}&fromBlock={}&toBlock={}",
        written.table.name().to_ascii_uppercase(),
        written.first_block,
        written.last_block - without * BLOCKS
    )
}

impl<'a> Fixture<'a> {
    pub(super) async fn start(
        mesh: &'a PrivateMesh,
        names: &[SectionName],
        args: &BenchArgs,
    ) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        print_line(&format!("writing {} MB of history", args.megabytes));
        let history = tokio::task::block_in_place(|| History::write(mesh, args.megabytes))?;
        let chain = format!("INSERT INTO chain (id) VALUES ('{CHAIN_ID}')");
        servers.execute("fill in blocks", &[FILL_BLOCKS, &chain]).await?;
        if names.contains(&SectionName::Sealing) {
            sealing::fill(&servers, args.rows).await?;
        }
        if names.contains(&SectionName::Beside) || names.contains(&SectionName::Scaled) {
            withdrawals::fill(&servers).await?;
        }
        let layout = Layout { env: vec![baseline::points()], ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        let length = Duration::from_secs(args.seconds.into());
        Ok(Self { mesh, servers, edges, history, length, rows: args.rows })
    }

    /// Reads of single rows at a fixed rate.
    async fn paced_reads(&self, length: Duration) -> Result<Load, Failure> {
        let rows = withdrawals::paths(&self.servers, withdrawals::ROWS).await?;
        let load = Load::paths(self.edges.uncached, rows, READERS, length);
        Ok(Load { period: Some(READ_PERIOD), ..load })
    }

    /// The processes that serve a download.
    fn on_the_way(&self) -> Vec<MeasuredProcess> {
        self.mesh.watch(&["export", NATS, "edge"])
    }

    /// Sends a request about the workers to the supervisor, as the command line does, and waits until they are
    /// ready.
    async fn order(&self, request: Request) -> Result<(), Failure> {
        match self.mesh.supervisor.answer(request).await {
            Answer::Refused { reason } => Err(Failure::failed(reason)),
            Answer::Done { .. } | Answer::Rows { .. } | Answer::Environment { .. } => {
                self.mesh.ready(&["export"]).await
            }
        }
    }

    /// Sets the number of workers.
    async fn scale(&self, replicas: u32) -> Result<(), Failure> {
        self.order(Request::Scale { name: "export".to_owned(), replicas }).await
    }
}

/// A statement that fills in rows with ids made by `hash`: `$1` is replaced by the rows of a block, and `$2` by
/// the rows in all. It runs after [`HASH`] in the same session.
fn filling(statement: &str, rows: u64) -> String {
    let statement = statement.replace("hash(", "pg_temp.hash(");
    let statement = statement.replace("$1", &format!("{}::int8", rows.div_ceil(BLOCKS)));
    statement.replace("$2", &format!("{rows}::int8"))
}
