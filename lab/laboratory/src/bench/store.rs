//! Section "store": point reads of the store library in one process, compared with pgbench and the same
//! statement.

use std::time::{Duration, Instant};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_store::Store;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

use super::{
    baseline::open_store,
    comparison::{ROUNDS, run_blocking},
    cost::{self, MeasuredProcess},
    meter::{Meter, Round},
    postgres_client::{PLANNED_ONCE, PostgresClient, READER, script},
    reads::Fixture,
    section::{Line, Section, median, median_if_known, rounded},
    sections::SectionName,
    withdrawals,
};

/// Number of concurrent reads.
const IN_FLIGHT: u64 = 64;
/// How long the store reads before the measurement.
const WARM_UP: Duration = Duration::from_millis(400);
/// Number of pgbench's connections.
const PGBENCH_CLIENTS: u64 = 16;

/// Compares the store with pgbench; skipped where there is none.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Some(pgbench) = PostgresClient::find(&fixture.servers, "pgbench")? else {
        return Ok(Section::skipped(SectionName::Store, "there is no pgbench"));
    };
    print_line("reading single rows by the store library and by pgbench");
    let first = withdrawals::FIRST_NUMBER;
    let numbers = first..=first + withdrawals::ROWS.cast_signed() - 1;
    let script = script(withdrawals::STATEMENT, &[":n"], numbers)?;
    let (server, length) = (fixture.mesh.watch(&[POSTGRES]), fixture.length);
    let (mut by_store, mut by_pgbench) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (url, watched) = (fixture.servers.database_url.clone(), server.clone());
        let read = move || read_by_store(url, &watched, length).map_err(|failure| failure.to_string());
        by_store.push(run_blocking(read).await?);
        let (pgbench, watched, script) = (pgbench.clone(), server.clone(), script.path().to_owned());
        by_pgbench.push(
            run_blocking(move || pgbench.bench(&script, (PGBENCH_CLIENTS, PLANNED_ONCE), &watched, length))
                .await?,
        );
    }
    Ok(section(&by_store, &by_pgbench))
}

/// Reads on one thread, as the `query` service does.
fn read_by_store(url: String, server: &[MeasuredProcess], length: Duration) -> Result<Round, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| cannot("start reading", &error))?.block_on(async {
        let store = open_store(url)?;
        store.until_ready().await;
        read_for(&store, WARM_UP).await?;
        let (meter, before_us) = (Meter::start(server), cost::thread_cpu_us());
        let amount = read_for(&store, length).await?;
        let reader_us = cost::thread_cpu_us() - before_us;
        Ok(Round {
            amount,
            spent: meter.stop(reader_us),
            own_us: vec![(READER, reader_us)],
            ..Round::default()
        })
    })
}

/// Reads for this long; returns the number of rows read.
async fn read_for(store: &Store, length: Duration) -> Result<u64, Failure> {
    let until = Instant::now() + length;
    let readers = (0..IN_FLIGHT).map(|seed| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut reads = 0;
            while Instant::now() < until {
                let number =
                    withdrawals::FIRST_NUMBER + random.random_range(0..withdrawals::ROWS.cast_signed());
                let row = store.point(withdrawals::STATEMENT, &[&number.to_string()]).await;
                let row = row.map_err(|error| cannot("read by the store", &error))?;
                let found: Option<&str> = row.try_get("id").map_err(|error| cannot("read a row", &error))?;
                if found.is_none() {
                    return Err(Failure::failed(format!("there is no withdrawal {number}")));
                }
                reads += 1;
            }
            Ok::<u64, Failure>(reads)
        })
    });
    let mut total = 0;
    for reader in readers.collect::<Vec<_>>() {
        total += reader.await.map_err(|error| cannot("read by the store", &error))??;
    }
    Ok(total)
}

/// The pgbench script: the statement without comments, with a variable as parameter.
fn section(by_store: &[Round], by_pgbench: &[Round]) -> Section {
    let rate = |rounds: &[Round]| median(rounds.iter().map(Round::rate));
    let line = |name, rounds: &[Round]| {
        let each = |round: &Round, total: u64| total as f64 / round.amount as f64;
        let reader = rounds.iter().map(|round| Some(each(round, round.own_us.first()?.1)));
        let server = rounds.iter().map(|round| Some(each(round, round.spent.cpu_us.as_ref()?.iter().sum())));
        Line::new("reader", name)
            .value(("reads/s", "readsPerSecond"), 0, rate(rounds))
            .figure("rounds", rounds.iter().map(|round| rounded(round.rate())).collect::<Vec<_>>())
            .value(("its CPU us/read", "readerCpuUsPerRead"), 1, median_if_known(reader))
            .value(("PostgreSQL's", "serverCpuUsPerRead"), 1, median_if_known(server))
    };
    let lines = [
        line("store, 4 connections, 64 at a time", by_store),
        line("pgbench, 16 clients, 2 threads", by_pgbench),
    ];
    let title = format!("store: the statement of GetWithdrawal, medians of {ROUNDS} rounds in turns");
    let found = ("store / pgbench, reads a second".to_owned(), rate(by_store) / rate(by_pgbench));
    Section::new(SectionName::Store, &title, &lines, "", &[found])
}
