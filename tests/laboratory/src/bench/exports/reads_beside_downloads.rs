//! Section "beside": reads of single rows at a fixed rate, alone, during four downloads at full speed, and
//! during such downloads from workers with low scheduling priority.

use std::time::Duration;

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_launcher::control::Request;
use rustix::process::{Pid, setpriority_process};
use serde_json::json;

use super::{
    super::{
        Section,
        comparison::{ROUNDS, figure, median, rounded},
        load::{Load, Requests, Round},
    },
    Fixture,
    drain::Drain,
    path, run_blocking, withdrawals,
};
use crate::table;

const DOWNLOADS: usize = 4;
pub(super) const CONNECTIONS: u64 = 8;
/// Time between two requests of a connection: 400 requests a second in all.
pub(super) const PERIOD: Duration = Duration::from_millis(20);
/// Nice value of the workers with low priority.
const NICE_VALUE: i32 = 10;

/// What runs during the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Background {
    Nothing,
    Downloads,
    NicedDownloads,
}

const SIDES: [(Background, &str); 3] = [
    (Background::Nothing, "alone"),
    (Background::Downloads, "beside 4 downloads"),
    (Background::NicedDownloads, "beside 4 downloads, workers niced"),
];

/// The results of one round: the reads, and the rate of the downloads, bytes a second.
struct RoundResult {
    reads: Round,
    downloaded: Option<f64>,
}

/// Runs the measurement. There is no bar: the right balance depends on the deployment.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows beside downloads");
    let rows = withdrawals::paths(&fixture.servers, withdrawals::ROWS).await?;
    let load = Load {
        address: fixture.edges.uncached,
        requests: Requests::Paths(rows),
        connections: CONNECTIONS,
        length: fixture.length,
        period: Some(PERIOD),
    };
    let mut rounds: [Vec<RoundResult>; SIDES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for ((background, _), rounds) in SIDES.iter().zip(&mut rounds) {
            if *background == Background::NicedDownloads {
                lower_priority(fixture)?;
            }
            rounds.push(round(fixture, &load, *background).await?);
        }
        // An unprivileged process cannot raise a priority again, so the workers are restarted.
        fixture.order(Request::Restart { name: "export".to_owned() }).await?;
        fixture.mesh.ready(&["export"]).await?;
    }
    Ok(section(&rounds))
}

async fn round(fixture: &Fixture<'_>, load: &Load, background: Background) -> Result<RoundResult, Failure> {
    let downloads = if background == Background::Nothing { 0 } else { DOWNLOADS };
    let paths = vec![path(fixture.history.few, 0); downloads];
    let (edge, load, length) = (fixture.edges.cached, load.clone(), fixture.length);
    let watched = fixture.mesh.watch(&["export", NATS, "edge", "edge-uncached", "query", POSTGRES]);
    run_blocking(move || {
        if downloads == 0 {
            return Ok(RoundResult { reads: load.run(&watched)?, downloaded: None });
        }
        let drain = Drain::start(edge, &paths);
        let (moved, reads) = std::thread::scope(|scope| {
            let reads = scope.spawn(|| load.run(&watched));
            (drain.count(&[], length), reads.join())
        });
        drain.stop()?;
        let reads = reads.map_err(|_| "the load died")??;
        Ok(RoundResult { reads, downloaded: Some(moved.amount as f64 / moved.spent.seconds) })
    })
    .await
}

/// Lowers the priority of every thread of the workers; threads started later inherit it.
pub(super) fn lower_priority(fixture: &Fixture<'_>) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot nice a worker: {error}"));
    for worker in fixture.mesh.watch(&["export"]) {
        let threads = std::fs::read_dir(format!("/proc/{}/task", worker.pid));
        for thread in threads.map_err(|error| cannot(&error))?.flatten() {
            let number = thread.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            match setpriority_process(number, NICE_VALUE) {
                // ESRCH: the thread has ended meanwhile.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(cannot(&error)),
            }
        }
    }
    Ok(())
}

fn section(rounds: &[Vec<RoundResult>; SIDES.len()]) -> Section {
    let (mut rows, mut sides) = (Vec::new(), Vec::new());
    for ((_, name), rounds) in SIDES.iter().zip(rounds) {
        let middle = |of_round: &dyn Fn(&RoundResult) -> f64| median(rounds.iter().map(of_round).collect());
        let rate = middle(&|result| result.reads.rate());
        let p50 = middle(&|result| result.reads.quantile_ms(0.5));
        let p99 = middle(&|result| result.reads.quantile_ms(0.99));
        let downloaded: Option<Vec<f64>> = rounds.iter().map(|result| result.downloaded).collect();
        let downloaded = downloaded.map(|rates| median(rates) / 1e6);
        let others: Option<Vec<f64>> = rounds.iter().map(|result| result.reads.others).collect();
        rows.push(vec![
            (*name).to_owned(),
            format!("{rate:.0}"),
            format!("{p50:.3}"),
            format!("{p99:.3}"),
            figure(downloaded),
        ]);
        sides.push(json!({
            "side": name, "requestsPerSecond": rate.round(), "p50Ms": rounded(p50), "p99Ms": rounded(p99),
            "downloadedMegabytesPerSecond": downloaded.map(rounded),
            "othersPercent": others.map(|shares| rounded(100.0 * median(shares))),
        }));
    }
    let title = format!(
        "beside: {CONNECTIONS} connections, each a single row every {} ms, medians of {ROUNDS} rounds in turns",
        PERIOD.as_millis()
    );
    let table =
        table::render_table(&title, &["reads", "requests/s", "p50 ms", "p99 ms", "downloads MB/s"], &rows);
    Section::new("beside", &table, &sides, &[])
}
