//! Section "store": point reads of the store library in one process, compared with pgbench and the same
//! statement.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_store::Store;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde_json::json;
use tokio::process::Command;

use super::{
    Section,
    bar::{Bar, Bound},
    baseline::open_store,
    comparison::{ROUNDS, figure, median, rounded},
    cost,
    cost::MeasuredProcess,
    withdrawals,
};
use crate::{
    private::{PrivateMesh, Servers},
    table,
};

const STATEMENT: &str = include_str!("../../../../services/query/sql/get_withdrawal.sql");

/// Number of concurrent reads.
const IN_FLIGHT: u64 = 64;
/// How long the store reads before the measurement.
const WARM_UP: Duration = Duration::from_millis(400);

/// The results of a round.
#[derive(Clone, Copy)]
struct Round {
    /// Reads a second.
    rate: f64,
    /// Processor time of the client for one read, microseconds.
    reader_us: Option<f64>,
    /// Processor time of PostgreSQL for one read, microseconds.
    server_us: Option<f64>,
}

/// Compares the store with pgbench; skipped when PostgreSQL's folder has no pgbench.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    servers: &Servers,
    length: Duration,
) -> Result<Section, Failure> {
    let pgbench = servers.postgres.with_file_name("pgbench");
    if !pgbench.is_file() {
        return Ok(Section::skipped("store", &format!("there is no {}", pgbench.display())));
    }
    print_line("reading single rows by the store library and by pgbench");
    let script = tempfile::NamedTempFile::new().map_err(|error| cannot("write a script", &error))?;
    std::fs::write(script.path(), script_text()).map_err(|error| cannot("write a script", &error))?;
    let mut rounds: [Vec<Round>; 2] = Default::default();
    for _ in 0..ROUNDS {
        let (url, server) = (servers.database_url.clone(), mesh.watch(&[POSTGRES]));
        let read = tokio::task::spawn_blocking(move || read_by_store(url, &server, length)).await;
        rounds[0].push(read.map_err(|error| cannot("read by the store", &error))??);
        rounds[1]
            .push(read_by_pgbench(&pgbench, servers, &mesh.watch(&[POSTGRES]), script.path(), length).await?);
    }
    Ok(section(&rounds))
}

/// Reads on one thread, as the `query` service does.
fn read_by_store(url: String, server: &[MeasuredProcess], length: Duration) -> Result<Round, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| cannot("start reading", &error))?.block_on(async {
        let store = open_store(url)?;
        store.until_ready().await;
        read_for(&store, WARM_UP).await?;
        let (server_before, reader_before) = (server_cpu_us(server), cost::thread_cpu());
        let begun = Instant::now();
        let reads = read_for(&store, length).await? as f64;
        let seconds = begun.elapsed().as_secs_f64();
        let reader = cost::thread_cpu().saturating_sub(reader_before);
        Ok(Round {
            rate: reads / seconds,
            reader_us: Some(reader.as_secs_f64() * 1e6 / reads),
            server_us: each(server_before, server_cpu_us(server), reads),
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
                let row = store.point(STATEMENT, &[&number.to_string()]).await;
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
fn script_text() -> String {
    let lines = STATEMENT.lines().filter(|line| !line.trim_start().starts_with("--"));
    let statement = lines.collect::<Vec<_>>().join("\n").replace("$1", ":id");
    let first = withdrawals::FIRST_NUMBER;
    let last = first + withdrawals::ROWS.cast_signed() - 1;
    format!("\\set id random({first}, {last})\n{statement};\n")
}

async fn read_by_pgbench(
    pgbench: &Path,
    servers: &Servers,
    server: &[MeasuredProcess],
    script: &Path,
    length: Duration,
) -> Result<Round, Failure> {
    let seconds = length.as_secs().max(1);
    let mut command = Command::new(pgbench);
    command.args(["-n", "-M", "prepared", "-c", "16", "-j", "2", "-T"]).arg(seconds.to_string());
    // The URL contains the password, which must not appear in the list of processes.
    let database = servers.parts()?;
    command.arg("-f").arg(script).args(["-h", &database.host, "-p", &database.port, "-U", &database.user]);
    command.arg(&database.name).env("PGPASSWORD", &database.password);
    command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (server_before, reader_before) = (server_cpu_us(server), cost::ended_children_cpu_us());
    let output = command.output().await.map_err(|error| cannot("run pgbench", &error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (Some(rate), Some(transactions)) = (number_behind(&said, "tps = "), transactions(&said)) else {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("pgbench failed: {why} {said}")));
    };
    Ok(Round {
        rate,
        reader_us: each(reader_before, cost::ended_children_cpu_us(), transactions),
        server_us: each(server_before, server_cpu_us(server), transactions),
    })
}

fn server_cpu_us(server: &[MeasuredProcess]) -> Option<u64> {
    Some(cost::cpu_us(server)?.into_iter().sum())
}

/// Processor time between two readings, per read.
fn each(before_us: Option<u64>, after_us: Option<u64>, reads: f64) -> Option<f64> {
    let spent = after_us?.saturating_sub(before_us?);
    Some(spent as f64 / reads)
}

fn transactions(said: &str) -> Option<f64> {
    number_behind(said, "number of transactions actually processed: ").filter(|number| *number > 0.0)
}

fn number_behind(said: &str, name: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split(|sign: char| !sign.is_ascii_digit() && sign != '.').next()?.parse().ok()
}

fn section(rounds: &[Vec<Round>; 2]) -> Section {
    let names = ["store, 4 connections, 64 at a time", "pgbench, 16 clients, 2 threads"];
    let rates = [0, 1].map(|side: usize| median(rounds[side].iter().map(|round| round.rate).collect()));
    let (mut rows, mut sides) = (Vec::new(), Vec::new());
    for ((name, rounds), rate) in names.iter().zip(rounds).zip(rates) {
        let middle = |of_round: fn(&Round) -> Option<f64>| {
            rounds.iter().map(of_round).collect::<Option<Vec<_>>>().map(median)
        };
        let (reader, server) = (middle(|round| round.reader_us), middle(|round| round.server_us));
        rows.push(vec![(*name).to_owned(), format!("{rate:.0}"), figure(reader), figure(server)]);
        let every: Vec<f64> = rounds.iter().map(|round| round.rate.round()).collect();
        sides.push(json!({
            "side": name, "readsPerSecond": rate.round(), "rounds": every,
            "readerCpuUsPerRead": reader.map(rounded), "serverCpuUsPerRead": server.map(rounded),
        }));
    }
    let bar = Bar {
        what: "store / pgbench, reads a second".to_owned(),
        found: rates[0] / rates[1],
        bound: Bound::AtLeast(1.0),
        aim: 1.6,
    };
    let title = format!("store: the statement of GetWithdrawal, medians of {ROUNDS} rounds in turns");
    let table = table::render_table(&title, &["reader", "reads/s", "its CPU us/read", "PostgreSQL's"], &rows);
    Section {
        table: format!("{table}{}", bar.line()),
        figures: json!({ "section": "store", "sides": sides, "bar": bar.figures() }),
        verdict: bar.verdict(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_pgbench_is_parsed() {
        let said = "latency average = 0.2 ms\nnumber of transactions actually processed: 300\n\
            tps = 61234.567890 (without initial connection time)\n";
        assert_eq!(number_behind(said, "tps = "), Some(61234.56789));
        assert_eq!(transactions(said), Some(300.0));
        assert_eq!(transactions("number of transactions actually processed: 0"), None);
        assert_eq!(number_behind("", "tps = "), None);
    }

    #[test]
    fn the_script_asks_the_statement_of_the_service() {
        let script = script_text();
        assert!(
            script.starts_with("\\set id random(1000000000000000000, 1000000000000099999)\n"),
            "{script}"
        );
        assert!(script.contains("WHERE id = :id ORDER BY"), "{script}");
        assert!(!script.contains('$') && !script.contains("--"), "{script}");
        assert_eq!(script.matches(';').count(), 1);
    }
}
