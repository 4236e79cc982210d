//! Section "catch-up": rows a second of an `ingest` that is far behind its chain, compared with psql's COPY of the
//! same rows into the same tables: one COPY for each table, all in one transaction.

use std::{cell::OnceCell, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_launcher::{database::Database, process::Process};

use super::{
    super::{
        comparison::{self, ROWS, Side, run_blocking},
        cost::{self, MeasuredProcess},
        meter::{Meter, Round},
        postgres_client::PostgresClient,
        section::Section,
        sections::SectionName,
    },
    Fixture, chain,
    prepared::PreparedRows,
};
use crate::{
    digests::Digests,
    generated_chain::ChainArgs,
    private_ingest::{Ingest, connect, stored},
};

/// Rows of a block, of each chain.
const BLOCK_ROWS: [u64; 2] = [100, 500];
/// Time to the next block: none comes during the section.
const NEVER: Duration = Duration::from_secs(86_400);
const WITHIN: Duration = Duration::from_secs(300);
/// The empty database that each round copies.
const EMPTY: &str = "empty";
const ROUND: &str = "round";

/// A chain, its rows, and what its first round stored.
struct Case {
    chain: ChainArgs,
    node: MeasuredProcess,
    prepared: PreparedRows,
    digests: OnceCell<Digests>,
}

/// Runs the comparison.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Some(psql) = PostgresClient::find(&fixture.servers, "psql")? else {
        return Ok(Section::skipped(SectionName::CatchUp, "there is no psql"));
    };
    fixture.servers.another_database(EMPTY).await?;
    let (mut cases, mut ports) = (Vec::new(), Vec::new());
    for (rows, name) in BLOCK_ROWS.into_iter().zip(["chain-100", "chain-500"]) {
        let (port, args) = chain(rows, fixture.rows / rows, NEVER)?;
        print_line(&format!("preparing {} blocks with {rows} rows each", args.first));
        let prepared = PreparedRows::of(&args).await?;
        fixture.mesh.start_chain(name, &args).await?;
        let [node] = &fixture.mesh.watch(&[name])[..] else {
            return Err(Failure::failed("there is no node"));
        };
        cases.push(Case { chain: args, node: node.clone(), prepared, digests: OnceCell::new() });
        ports.push(port);
    }
    let [small, large] = &cases[..] else { return Err(Failure::failed("there are two cases")) };
    print_line("catching up, and copying the same rows");
    let sides = comparison::run_rounds([
        Side::new("ingest, 100 a block", ROWS, || catch_up(fixture, small)),
        Side::new("COPY, 100 a block", ROWS, || copy(fixture, small, &psql)),
        Side::new("ingest, 500 a block", ROWS, || catch_up(fixture, large)),
        Side::new("COPY, 500 a block", ROWS, || copy(fixture, large, &psql)),
    ])
    .await?;
    let found = [sides[0].rate_to(&sides[1], "rows"), sides[2].rate_to(&sides[3], "rows")];
    let title = format!("{} rows in 7 tables with their triggers, one COPY for each", fixture.rows);
    Ok(comparison::section(SectionName::CatchUp, &title, &sides, &found))
}

/// An empty database for one round.
async fn begin(fixture: &Fixture<'_>) -> Result<Database, Failure> {
    let create = format!("CREATE DATABASE {ROUND} TEMPLATE {EMPTY}");
    fixture.servers.execute("create a database", &[&create, "CHECKPOINT"]).await?;
    Ok(fixture.servers.database_named(ROUND))
}

/// Checks that all rounds store the same, and drops the database.
async fn end(fixture: &Fixture<'_>, case: &Case, database: &Database) -> Result<(), Failure> {
    let found = Digests::read(&connect(database).await?).await?;
    let differences = found.differences(case.digests.get_or_init(|| found.clone()));
    if let Some(difference) = differences.first() {
        return Err(Failure::failed(format!("the sides store different rows: {difference}")));
    }
    let drop = format!("DROP DATABASE {ROUND} WITH (FORCE)");
    fixture.servers.execute("drop a database", &[&drop]).await
}

/// Starts an `ingest` and waits until it has stored the whole chain.
async fn catch_up(fixture: &Fixture<'_>, case: &Case) -> Result<Round, Failure> {
    let Fixture { mesh, servers, .. } = fixture;
    let database = begin(fixture).await?;
    let client = connect(&database).await?;
    let ingest = Ingest { name: "catch-up", database: &database, chain: &case.chain, env: &[] };
    let spec = (mesh.ingest_group(servers, &ingest)?.replica_spec)(0, 0).spec;
    let process = Process::spawn(&spec).map_err(|error| cannot("start ingest", &error))?;
    let mut watched = vec![MeasuredProcess { name: "ingest".to_owned(), pid: process.pid() }];
    watched.push(MeasuredProcess { name: "node".to_owned(), ..case.node.clone() });
    watched.extend(mesh.watch(&[POSTGRES]));
    let meter = Meter::start(&watched);
    let outcome = stored(&client, case.chain.first, WITHIN).await;
    let spent = meter.stop(0);
    if let Some(kib) = cost::peak_memory_kib(process.pid()) {
        print_line(&format!("ingest used up to {} MiB", kib / 1024));
    }
    process.kill_group();
    let _ = process.wait().await;
    outcome?;
    drop(client);
    end(fixture, case, &database).await?;
    Ok(Round { amount: case.prepared.rows, spent, ..Round::default() })
}

/// Copies the same rows.
async fn copy(fixture: &Fixture<'_>, case: &Case, psql: &PostgresClient) -> Result<Round, Failure> {
    let database = begin(fixture).await?;
    let mut command = psql.command();
    command.env("PGDATABASE", ROUND).args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1"]);
    case.prepared.copies.iter().for_each(|copy| _ = command.args(["-c", copy]));
    let watched = fixture.mesh.watch(&[POSTGRES]);
    let round = run_blocking(move || {
        let (meter, before_us) = (Meter::start(&watched), cost::ended_children_cpu_us().unwrap_or(0));
        let output = command.output().map_err(|error| format!("cannot run psql: {error}"))?;
        let own_us = cost::ended_children_cpu_us().unwrap_or(0).saturating_sub(before_us);
        let spent = meter.stop(own_us);
        if !output.status.success() {
            return Err(format!("psql failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(Round { spent, own_us: vec![("psql", own_us)], ..Round::default() })
    });
    let round = round.await?;
    end(fixture, case, &database).await?;
    Ok(Round { amount: case.prepared.rows, ..round })
}
