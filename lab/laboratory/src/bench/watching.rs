//! Suite "watch": thousands of watchers at a block a second, against the same clients polling, and plain reads
//! beside watchers.

use std::{sync::Arc, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::NATS,
    terminal::print_line,
};
use mesh_launcher::open_files;

use super::{
    comparison::run_blocking,
    cost::{self, MeasuredProcess},
    load::Load,
    meter::Spent,
    section::{Line, Section, quantile},
    sections::SectionName,
    watchers::{Clients, Manner, PERIOD, Seen},
    withdrawals,
};
use crate::{
    bench::args::BenchArgs,
    private::{Edges, Layout, PrivateMesh, Servers},
    watches::blocks::{Blocks, Changes},
};

const WATCHERS: usize = 10_000;
const QUESTIONS: u64 = 100;
/// Questions of which a block changes the answer where it does not change all. On the recorded network no list
/// of the contract changes with more than 6 of 100 blocks.
const FEW: usize = 6;
/// Changes the withdrawals that are watched.
const CHANGE: &str = "UPDATE withdrawals SET ref = $1::text WHERE id = ANY($2)";
/// Least length of a round, so that it has many blocks.
const LEAST_LENGTH: Duration = Duration::from_secs(20);
/// Connections that read during the watches, and the time between two reads of one.
const READERS: u64 = 16;
const READ_PERIOD: Duration = Duration::from_millis(20);

/// The running mesh with filled tables.
pub(super) struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    servers: Servers,
    edges: Edges,
    paths: Arc<[String]>,
    length: Duration,
}

impl<'a> Fixture<'a> {
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &BenchArgs) -> Result<Self, Failure> {
        open_files::raise();
        let servers = mesh.start_servers().await?;
        withdrawals::fill(&servers).await?;
        let edges = mesh.start_services(&servers, &Layout::default()).await?;
        let paths = withdrawals::paths(&servers, QUESTIONS).await?;
        let length = Duration::from_secs(args.seconds.into()).max(LEAST_LENGTH);
        Ok(Self { mesh, servers, edges, paths, length })
    }

    fn clients(&self, manner: Manner, changes: usize) -> Clients {
        let (edge, paths) = (self.edges.cached, Arc::clone(&self.paths));
        Clients { manner, edge, count: WATCHERS, paths, changes, length: self.length }
    }

    /// Starts to write blocks, each of which changes the answers to this many questions in turn.
    async fn blocks(&self, changes: usize) -> Result<Blocks, Failure> {
        let all: Vec<String> =
            self.paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.1.to_owned())).collect();
        let ids = Box::new(move |height: u64| {
            let first = height as usize * changes % all.len();
            all.iter().cycle().skip(first).take(changes).cloned().collect()
        });
        Blocks::write(&self.servers, Changes { period: PERIOD, statement: CHANGE, ids }).await
    }

    fn watched(&self) -> Vec<MeasuredProcess> {
        self.mesh.watch(&["edge", "query", "node-info", NATS, "postgres"])
    }

    async fn run(&self, manner: Manner, changes: usize) -> Result<Side, Failure> {
        let watched = self.watched();
        let edge = watched.iter().find(|process| process.name == "edge").map(|edge| edge.pid);
        let before_kib = edge.and_then(cost::memory_kib);
        let blocks = self.blocks(changes).await?;
        let before = self.statements().await?;
        let clients = self.clients(manner, changes);
        let (seen, blocks) =
            run_blocking(move || clients.run(&watched, &blocks).map(|seen| (seen, blocks))).await?;
        drop(blocks);
        let statements = self.statements().await? - before;
        Ok(Side { seen, before_kib, statements })
    }

    /// Transactions that PostgreSQL has committed.
    async fn statements(&self) -> Result<i64, Failure> {
        let database = self.servers.connect("").await?;
        let sum = "SELECT sum(xact_commit)::int8 FROM pg_stat_database";
        let row = database.query_one(sum, &[]).await;
        Ok(row.map_err(|error| cannot("count transactions", &error))?.get(0))
    }

    /// Watchers all of whose answers change with each block, against the same clients polling.
    pub(super) async fn busy(&self) -> Result<Section, Failure> {
        let (watching, polling) = self.against_polling(self.paths.len()).await?;
        let found = [
            ("from COMMIT to a watcher, p99 ms".to_owned(), quantile(&watching.seen.delays_ms, 0.99)),
            ("changes that a watcher missed".to_owned(), watching.seen.missed as f64),
            ("edge, CPU ms a second".to_owned(), watching.edge_ms()),
            ("edge, KiB a watcher".to_owned(), watching.kib_each()),
            ratio(&watching, &polling),
        ];
        let title =
            format!("watchers: {WATCHERS} clients, {QUESTIONS} questions, a block a second changes all");
        Ok(section(SectionName::Watchers, &title, [&watching, &polling], &found))
    }

    /// Watchers few of whose answers change with each block, against the same clients polling.
    pub(super) async fn quiet(&self) -> Result<Section, Failure> {
        let (watching, polling) = self.against_polling(FEW).await?;
        let found = [
            ("changes that a watcher missed".to_owned(), watching.seen.missed as f64),
            ratio(&watching, &polling),
        ];
        let title =
            format!("watch-quiet: {WATCHERS} clients, {QUESTIONS} questions, a block a second changes {FEW}");
        Ok(section(SectionName::WatchQuiet, &title, [&watching, &polling], &found))
    }

    async fn against_polling(&self, changes: usize) -> Result<(Side, Side), Failure> {
        print_line(&format!(
            "{WATCHERS} watchers of {QUESTIONS} questions, of which {changes} change every second"
        ));
        let watching = self.run(Manner::Watch, changes).await?;
        print_line("the same clients polling");
        Ok((watching, self.run(Manner::Poll, changes).await?))
    }

    /// Single rows without and with watchers.
    pub(super) async fn beside(&self) -> Result<Section, Failure> {
        let paths = withdrawals::paths(&self.servers, 20_000).await?;
        let load = Load {
            period: Some(READ_PERIOD),
            ..Load::paths(self.edges.cached, paths.to_vec(), READERS, self.length)
        };
        print_line("single rows alone, and then beside watchers");
        let blocks = self.blocks(self.paths.len()).await?;
        let (alone, watched) = (load.clone(), self.watched());
        let alone = run_blocking(move || alone.run(&watched)).await?;
        let clients = Clients {
            length: self.length + Duration::from_secs(15),
            ..self.clients(Manner::Watch, self.paths.len())
        };
        let watched = self.watched();
        let watching = run_blocking(move || clients.run(&watched, &blocks).map(|seen| (seen, blocks)));
        let (beside, reading) = (load, self.watched());
        let (watching, beside) = tokio::join!(watching, async {
            // Until all of them are connected.
            tokio::time::sleep(Duration::from_secs(10)).await;
            run_blocking(move || beside.run(&reading)).await
        });
        let ((seen, _blocks), beside) = (watching?, beside?);
        let line = |name, round: &super::meter::Round| {
            Line::new("single rows", name)
                .value(("a second", "aSecond"), 0, round.rate())
                .value(("p50 ms", "p50Ms"), 2, round.quantile_ms(0.5))
                .value(("p99 ms", "p99Ms"), 2, round.quantile_ms(0.99))
        };
        let title = format!("watch-beside: {} reads a second beside {WATCHERS} watchers", READERS * 50);
        let lines = [line("alone", &alone), line("beside watchers", &beside)];
        let note = format!("watchers meanwhile: p99 {:.0} ms\n", quantile(&seen.delays_ms, 0.99));
        let found =
            [("p99 beside watchers / alone".to_owned(), beside.quantile_ms(0.99) / alone.quantile_ms(0.99))];
        Ok(Section::new(SectionName::WatchBeside, &title, &lines, &note, &found))
    }
}

/// What watching costs the mesh of what polling does.
fn ratio(watching: &Side, polling: &Side) -> (String, f64) {
    ("CPU of the mesh, watching / polling".to_owned(), watching.mesh_ms() / polling.mesh_ms())
}

fn section(name: SectionName, title: &str, sides: [&Side; 2], found: &[(String, f64)]) -> Section {
    let [watching, polling] = sides;
    let lines = [watching.line("watch"), polling.line("poll with If-None-Match")];
    Section::new(name, title, &lines, "", found)
}

/// A run of all clients.
struct Side {
    seen: Seen,
    /// Resident memory of the edge without clients, KiB.
    before_kib: Option<u64>,
    /// Transactions of PostgreSQL during the whole run.
    statements: i64,
}

impl Side {
    fn spent(&self) -> &Spent {
        &self.seen.round.spent
    }

    fn edge_ms(&self) -> f64 {
        let edges = self.spent().watched.iter().zip(self.spent().cpu_us.iter().flatten());
        let us: u64 = edges.filter(|(process, _)| process.name == "edge").map(|(_, us)| us).sum();
        us as f64 / 1e3 / self.spent().seconds
    }

    fn mesh_ms(&self) -> f64 {
        self.spent().cpu_us.iter().flatten().sum::<u64>() as f64 / 1e3 / self.spent().seconds
    }

    fn kib_each(&self) -> f64 {
        let more =
            self.seen.edge_kib.zip(self.before_kib).map(|(after, before)| after.saturating_sub(before));
        more.map_or(f64::NAN, |kib| kib as f64 / WATCHERS as f64)
    }

    fn line(&self, name: &str) -> Line {
        let delays = &self.seen.delays_ms;
        Line::new("clients", name)
            .value(("a second", "aSecond"), 0, self.seen.round.rate())
            .value(("p50 ms", "p50Ms"), 1, quantile(delays, 0.5))
            .value(("p99 ms", "p99Ms"), 1, quantile(delays, 0.99))
            .value(("edge ms/s", "edgeMsPerSecond"), 1, self.edge_ms())
            .value(("mesh ms/s", "meshMsPerSecond"), 1, self.mesh_ms())
            .value(("KiB each", "kibEach"), 1, self.kib_each())
            .figure("missed", self.seen.missed)
            .figure("transactions", self.statements)
    }
}
