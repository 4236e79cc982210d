//! Section "catch-up": rows a second of an `ingest` that is far behind its chain, compared with psql's COPY of the
//! same rows into the same tables: one COPY for each table, all in one transaction.

use std::{cell::OnceCell, path::PathBuf, process::Command, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_launcher::{database::Database, process::Process};
use mesh_store::append::tables;

use super::{
    super::{
        comparison::{self, ROWS, Side, run_blocking},
        cost::{self, MeasuredProcess},
        meter::{Meter, Round},
        postgres_client::PostgresClient,
        section::Figures,
        world::World,
    },
    chain,
};
use crate::{
    digests::Digests,
    generated_chain::ChainArgs,
    private::connect,
    private_ingest::{Ingest, stored},
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

/// Runs the comparison.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let psql = PostgresClient::find(&world.servers, "psql")?;
    let rows = world.args.rows / PART;
    world.servers.another_database(EMPTY).await?;
    let (mut cases, mut ports) = (Vec::new(), Vec::new());
    for (block_rows, name) in BLOCK_ROWS.into_iter().zip(["chain-100", "chain-500"]) {
        let (port, chain) = chain(block_rows, rows / block_rows, NEVER)?;
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
        print_line(&format!("ingest used up to {:.0} MiB", cost::peak_mib(process.pid())));
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

/// Runs psql in the database of the round.
fn run(mut psql: Command) -> Result<(), String> {
    let output = psql.env("PGDATABASE", ROUND).output();
    let output = output.map_err(|error| format!("cannot run psql: {error}"))?;
    let is_done = output.status.success();
    is_done.then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}
