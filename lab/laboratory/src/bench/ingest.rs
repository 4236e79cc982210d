//! Suite "ingest": a chain's blocks into the store, catching up and as they come.
//!
//! Section "catch-up": rows a second of an `ingest` that is far behind its chain, compared with psql's COPY of the
//! same rows into the same tables: one COPY for each table, all in one transaction.
//! Section "front": the time from a block at the node's RPC until a read at an edge shows it.

use std::{
    cell::OnceCell,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use mesh::{
    failure::{Failure, cannot},
    processes::{NATS, POSTGRES},
};
use mesh_launcher::{database::Database, process::Process, services::INGEST};
use mesh_store::append::tables;
use tokio::time::{sleep, timeout};

use super::{
    comparison::{self, ROWS, Side, run_blocking},
    cost::{self, MeasuredProcess},
    meter::{Meter, Round},
    postgres_client::PostgresClient,
    section::{Figures, quantile},
    world::World,
};
use crate::{
    digests::Digests,
    generated_chain::{ChainArgs, now_ms},
    metrics,
    private::{Layout, UNCACHED_EDGE, connect},
    private_chain::{Ingest, stored},
    watches::HeightAt,
};

/// Rows of a block, of each chain.
const BLOCK_ROWS: [u64; 2] = [100, 500];
/// Time to the next block: none comes during the section.
const NEVER: Duration = Duration::from_secs(86_400);
/// A part of `--rows` is caught up with in a round.
const PART: u64 = 5;
const WITHIN: Duration = Duration::from_secs(300);
/// The empty database that each round copies.
const EMPTY: &str = "empty";
const ROUND: &str = "round";

/// A chain, and what its first round has stored.
struct Case<'a> {
    world: &'a World<'a>,
    psql: &'a PostgresClient,
    chain: ChainArgs,
    node: Vec<MeasuredProcess>,
    digests: OnceCell<Digests>,
    /// Statements of psql that copy the same rows.
    copies: OnceCell<Vec<String>>,
}

pub(crate) async fn catch_up(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?.in_database(ROUND);
    let rows = world.args.rows / PART;
    world.servers.another_database(EMPTY).await?;
    let (mut cases, mut ports) = (Vec::new(), Vec::new());
    for (block_rows, name) in BLOCK_ROWS.into_iter().zip(["chain-100", "chain-500"]) {
        let (port, chain) = ChainArgs::now(block_rows, rows / block_rows, NEVER)?;
        world.mesh.start_chain(name, &chain).await?;
        let (node, digests, copies) = (world.mesh.watch(&[name]), OnceCell::new(), OnceCell::new());
        cases.push(Case { world, psql: &psql, chain, node, digests, copies });
        ports.push(port);
    }
    let (small, large) = (&cases[0], &cases[1]);
    let sides = comparison::run_rounds([
        Side::new("ingest, 100 a block", ROWS, || small.catch_up()),
        Side::new("COPY, 100 a block", ROWS, || small.copy()),
        Side::new("ingest, 500 a block", ROWS, || large.catch_up()),
        Side::new("COPY, 500 a block", ROWS, || large.copy()),
    ])
    .await?;
    let found = vec![sides[0].rate() / sides[1].rate(), sides[2].rate() / sides[3].rate()];
    let title = format!("{rows} rows in 7 tables with their triggers, one COPY for each");
    Ok(comparison::figures(&title, &sides, found))
}

impl Case<'_> {
    /// An empty database for one round.
    async fn begin(&self) -> Result<Database, Failure> {
        let create = format!("CREATE DATABASE {ROUND} TEMPLATE {EMPTY}");
        self.world.servers.execute("create a database", &[&create, "CHECKPOINT"]).await?;
        Ok(self.world.servers.database_named(ROUND))
    }

    /// Checks that all rounds store the same, and drops the database.
    async fn end(&self, database: &Database) -> Result<(), Failure> {
        let found = Digests::read(&connect(database.url()).await?).await?;
        let differences = found.differences(self.digests.get_or_init(|| found.clone()));
        if let Some(difference) = differences.first() {
            return Err(Failure::failed(format!("the sides store different rows: {difference}")));
        }
        let drop = format!("DROP DATABASE {ROUND} WITH (FORCE)");
        self.world.servers.execute("drop a database", &[&drop]).await
    }

    /// Starts an `ingest` and waits until it has stored the whole chain.
    async fn catch_up(&self) -> Result<Round, Failure> {
        let World { mesh, servers, .. } = self.world;
        let database = self.begin().await?;
        let client = connect(database.url()).await?;
        let ingest = Ingest { name: "catch-up", database: &database, chain: &self.chain, env: &[] };
        let spec = (mesh.ingest_group(servers, &ingest)?.replica_spec)(0, 0).spec;
        let process = Process::spawn(&spec).map_err(|error| cannot("start ingest", &error))?;
        let mut watched = vec![MeasuredProcess { name: "ingest".to_owned(), pid: process.pid() }];
        watched.extend(self.node.iter().cloned().chain(mesh.watch(&[POSTGRES])));
        let meter = Meter::start(&watched);
        let outcome = stored(&client, self.chain.first, WITHIN).await;
        let spent = meter.stop(0.0);
        process.kill_group();
        let _ = process.wait().await;
        outcome?;
        drop(client);
        if self.copies.get().is_none() {
            let _ = self.copies.set(self.dump().map_err(Failure::failed)?);
        }
        self.end(&database).await?;
        Ok(Round { amount: self.amount(), spent, ..Round::default() })
    }

    /// Rows of the chain, blocks included.
    fn amount(&self) -> u64 {
        (self.chain.rows + 1) * self.chain.first
    }

    /// Writes the rows of the database in one file for each table; returns the statements that copy them, in the
    /// order in which `ingest` writes tables.
    fn dump(&self) -> Result<Vec<String>, String> {
        let folder = self.world.mesh.home.root().join(format!("rows-{}", self.chain.rows));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let names = ["chain"].into_iter().chain(tables().iter().map(|table| table.name)).chain(["blocks"]);
        let files: Vec<(&str, PathBuf)> = names.map(|name| (name, folder.join(name))).collect();
        let statement =
            |(table, file): &(&str, PathBuf), way| format!("\\copy {table} {way} '{}'", file.display());
        run(self.psql.statements(&files.iter().map(|file| statement(file, "to")).collect::<Vec<_>>()))?;
        let has_rows = |file: &&(&str, PathBuf)| file.1.metadata().is_ok_and(|data| data.len() > 0);
        Ok(files.iter().filter(has_rows).map(|file| statement(file, "from")).collect())
    }

    /// Copies the same rows.
    async fn copy(&self) -> Result<Round, Failure> {
        let database = self.begin().await?;
        let copies = self.copies.get().ok_or_else(|| Failure::failed("no round has stored the chain"))?;
        let mut command = self.psql.statements(copies);
        command.arg("-1");
        let (watched, amount) = (self.world.mesh.watch(&[POSTGRES]), self.amount());
        let work = move || run(command).map(|()| amount);
        let round = run_blocking(move || Round::of(("psql", cost::children_us), &watched, work)).await?;
        self.end(&database).await?;
        Ok(round)
    }
}

fn run(mut psql: Command) -> Result<(), String> {
    let output = psql.output();
    let output = output.map_err(|error| format!("cannot run psql: {error}"))?;
    let is_done = output.status.success();
    is_done.then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Rows of a block, and the time to the next one.
const FRONT_ROWS: u64 = 500;
const PERIOD: Duration = Duration::from_secs(1);
/// Blocks that are rendered before the first one that is measured.
const MORE: u64 = 120;
/// Shortest measurement, so that it has enough blocks.
const LEAST_LENGTH: Duration = Duration::from_secs(60);
/// How often the edge is read, which is also the uncertainty of the results.
const POLL_PAUSE: Duration = Duration::from_millis(2);
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// What is read: rows that each block has.
const PATH: &str = "/api/v2/markets?pagination.first=5";

pub(crate) async fn front(world: &World<'_>) -> Result<Figures, Failure> {
    let World { mesh, servers, .. } = world;
    let length = world.length().max(LEAST_LENGTH);
    let blocks = length.as_secs() / PERIOD.as_secs();
    let (_port, mut args) = ChainArgs::now(FRONT_ROWS, 1, PERIOD)?;
    args.rendered = blocks + MORE;
    mesh.start_chain("chain-front", &args).await?;
    let replicas = [("tx-relay", 0), ("export", 0), (UNCACHED_EDGE, 0), (INGEST, 0)];
    let layout = Layout { replicas: &replicas, node_url: Some(args.url()), ..Layout::default() };
    let edge = mesh.start_services(servers, &layout).await?.cached;
    let ingest = Ingest { name: "ingest-front", database: &servers.database, chain: &args, env: &[] };
    mesh.start_ingest(servers, &ingest, 1)?;
    mesh.ready(&[ingest.name]).await?;
    let client = connect(servers.database.url()).await?;
    stored(&client, args.latest(), SEEN_WITHIN).await?;
    let first = args.latest() + 2;
    let (now, clock_ms) = (Instant::now(), now_ms());
    let due = |height| now + Duration::from_millis(args.available_ms(height).saturating_sub(clock_ms));
    let available: Vec<_> = (first..first + blocks).map(|height| (height, due(height))).collect();
    let meter = Meter::start(&mesh.watch(&[ingest.name, "edge", "query", "node-info", NATS, POSTGRES]));
    let polling = poll(format!("http://{edge}{PATH}"), first + blocks - 1);
    let seen = timeout(length + SEEN_WITHIN, polling).await;
    let spent = meter.stop(0.0);
    let delays = delays_ms(&available, &seen.map_err(|error| cannot("see the last block", &error))??);
    let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
    let title = format!(
        "from the node's RPC to a read at an edge, {blocks} blocks with {FRONT_ROWS} rows, one a second"
    );
    let note = format!("p50 {p50:.1} ms, p99 {p99:.1} ms, longest {longest:.1} ms\n");
    let (lines, found) = (spent.lines().collect(), vec![p99, p50]);
    Ok(Figures { title, lines, note, found, ..Figures::default() })
}

/// Polls an edge and records each new height, until it has seen the last one. The edge caches the answer until
/// a newer block is announced.
async fn poll(url: String, last: u64) -> Result<Vec<HeightAt>, Failure> {
    let (client, mut seen) = (metrics::local_client(), Vec::<HeightAt>::new());
    while seen.last().is_none_or(|(height, _)| *height < last) {
        let answer = client.get(&url).send().await.and_then(reqwest::Response::error_for_status);
        let answer = answer.map_err(|error| cannot("read an edge", &error))?;
        let now = Instant::now();
        let height =
            answer.headers().get("x-block-height").and_then(|value| value.to_str().ok()?.parse().ok());
        let height = height.ok_or_else(|| Failure::failed("an answer has no height"))?;
        if seen.last().is_none_or(|(before, _)| *before < height) {
            seen.push((height, now));
        }
        // The client reuses the connection only after the whole body was read.
        answer.bytes().await.map_err(|error| cannot("read an answer", &error))?;
        sleep(POLL_PAUSE).await;
    }
    Ok(seen)
}

/// Milliseconds from the time of each block until it or a newer one was seen; infinite when it never was.
fn delays_ms(available: &[HeightAt], seen: &[HeightAt]) -> Vec<f64> {
    let delay = |(height, begun): &HeightAt| {
        let (_, at) = seen.iter().find(|(shown, _)| shown >= height)?;
        Some(at.saturating_duration_since(*begun).as_secs_f64() * 1e3)
    };
    available.iter().map(|block| delay(block).unwrap_or(f64::INFINITY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_there_when_it_or_a_newer_one_is_seen() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let available = [(5, at(10)), (6, at(20)), (7, at(30)), (8, at(40))];
        let seen = [(4, at(1)), (5, at(9)), (7, at(36))];
        assert_eq!(delays_ms(&available, &seen), [0.0, 16.0, 6.0, f64::INFINITY]);
    }
}
