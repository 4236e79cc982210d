//! Suite "exports": downloads of a stored history and of a ledger, and the sealing of history segments.

mod drain;
mod first_byte;
mod ledger;
mod psql;
mod raw;
mod reads_beside_downloads;
mod scaled;
mod scaling;
mod sealing;
mod splice;

use std::time::Duration;

use mesh::{
    failure::{Failure, cannot},
    processes::NATS,
    terminal::print_line,
};
use mesh_launcher::control::{Answer, Request};

use super::{
    Section, baseline,
    cost::MeasuredProcess,
    sections::{ExportsSection, SectionName},
    withdrawals,
};
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

/// Runs the sections, and prints each as soon as it is finished.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    names: &[ExportsSection],
    args: &BenchArgs,
) -> Result<Vec<Section>, Failure> {
    let fixture = Fixture::start(mesh, names, args).await?;
    let mut sections = Vec::new();
    for name in names {
        let measured = fixture.measure(*name).await;
        let section =
            measured.unwrap_or_else(|failure| Section::failed(SectionName::Exports(*name), failure));
        println!("{}", section.table);
        sections.push(section);
    }
    Ok(sections)
}

/// The running mesh with its data.
struct Fixture<'a> {
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
    async fn start(
        mesh: &'a PrivateMesh,
        names: &[ExportsSection],
        args: &BenchArgs,
    ) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        print_line(&format!("writing {} MB of history", args.megabytes));
        let history = tokio::task::block_in_place(|| History::write(mesh, args.megabytes))?;
        let database = servers.connect("").await?;
        let chain = format!("INSERT INTO chain (id) VALUES ('{CHAIN_ID}')");
        for statement in [FILL_BLOCKS, &chain] {
            database.batch_execute(statement).await.map_err(|error| cannot("fill in blocks", &error))?;
        }
        if names.contains(&ExportsSection::Sealing) {
            sealing::fill(&database, args.rows).await?;
        }
        if names.contains(&ExportsSection::Ledger) {
            ledger::fill(&database, args.rows).await?;
        }
        if names.contains(&ExportsSection::Beside) || names.contains(&ExportsSection::Scaled) {
            withdrawals::fill(&servers).await?;
        }
        let layout = Layout { env: vec![baseline::points()], ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        let length = Duration::from_secs(args.seconds.into());
        Ok(Self { mesh, servers, edges, history, length, rows: args.rows })
    }

    async fn measure(&self, name: ExportsSection) -> Result<Section, Failure> {
        match name {
            ExportsSection::Splice => splice::measure(self).await,
            ExportsSection::FirstByte => first_byte::measure(self).await,
            ExportsSection::Sealing => sealing::measure(self).await,
            ExportsSection::Ledger => ledger::measure(self).await,
            ExportsSection::Scaling => scaling::measure(self).await,
            ExportsSection::Beside => reads_beside_downloads::measure(self).await,
            ExportsSection::Scaled => scaled::measure(self).await,
        }
    }

    /// The processes that serve a download.
    fn on_the_way(&self) -> Vec<MeasuredProcess> {
        self.mesh.watch(&["export", NATS, "edge"])
    }

    /// Sends a request to the supervisor, as the command line does.
    async fn order(&self, request: Request) -> Result<(), Failure> {
        match self.mesh.supervisor.answer(request).await {
            Answer::Refused { reason } => Err(Failure::failed(reason)),
            Answer::Done { .. } | Answer::Rows { .. } | Answer::Environment { .. } => Ok(()),
        }
    }
}

/// Runs a blocking measurement on a thread of its own.
async fn run_blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Failure> {
    let ran = tokio::task::spawn_blocking(what).await;
    ran.map_err(|error| error.to_string()).flatten().map_err(Failure::failed)
}
