//! Section "beside": reads of single rows at a fixed rate, alone, during four downloads at full speed, and during
//! such downloads from workers with low scheduling priority.

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
        contest::{ROUNDS, figure, median, rounded},
        load::{Asks, Load, Round},
    },
    Stage, apart,
    drain::Drain,
    path, withdrawals,
};
use crate::table;

const DOWNLOADS: usize = 4;
pub(super) const CONNECTIONS: u64 = 8;
/// Time between two requests of a connection: 400 requests a second in all.
pub(super) const PERIOD: Duration = Duration::from_millis(20);
/// Nice value of the workers with low priority.
const NICE: i32 = 10;

/// What runs during the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Downloads,
    NicedDownloads,
}

const SIDES: [(Beside, &str); 3] = [
    (Beside::Nothing, "alone"),
    (Beside::Downloads, "beside 4 downloads"),
    (Beside::NicedDownloads, "beside 4 downloads, workers niced"),
];

/// The results of one round: the reads, and the rate of the downloads, bytes a second.
struct Both {
    reads: Round,
    downloaded: Option<f64>,
}

/// Runs the measurement. There is no bar: the right balance depends on the deployment.
pub(super) async fn measure(stage: &Stage<'_>) -> Result<Section, Failure> {
    print_line("reading single rows beside downloads");
    let rows = withdrawals::paths(&stage.servers, withdrawals::ROWS).await?;
    let load = Load {
        address: stage.edges.uncached,
        asks: Asks::Paths(rows),
        connections: CONNECTIONS,
        length: stage.length,
        period: Some(PERIOD),
    };
    let mut rounds: [Vec<Both>; SIDES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for ((beside, _), rounds) in SIDES.iter().zip(&mut rounds) {
            if *beside == Beside::NicedDownloads {
                be_nice(stage)?;
            }
            rounds.push(round(stage, &load, *beside).await?);
        }
        // An unprivileged process cannot raise a priority again, so the workers are restarted.
        stage.order(Request::Restart { name: "export".to_owned() }).await?;
        stage.mesh.ready(&["export"]).await?;
    }
    Ok(section(&rounds))
}

async fn round(stage: &Stage<'_>, load: &Load, beside: Beside) -> Result<Both, Failure> {
    let downloads = if beside == Beside::Nothing { 0 } else { DOWNLOADS };
    let paths = vec![path(stage.history.few, 0); downloads];
    let (edge, load, length) = (stage.edges.cached, load.clone(), stage.length);
    let watched = stage.mesh.watch(&["export", NATS, "edge", "edge-uncached", "query", POSTGRES]);
    apart(move || {
        if downloads == 0 {
            return Ok(Both { reads: load.run(&watched)?, downloaded: None });
        }
        let drain = Drain::start(edge, &paths);
        let (moved, reads) = std::thread::scope(|scope| {
            let reads = scope.spawn(|| load.run(&watched));
            (drain.count(&[], length), reads.join())
        });
        drain.stop()?;
        let reads = reads.map_err(|_| "the load died")??;
        Ok(Both { reads, downloaded: Some(moved.amount as f64 / moved.spent.seconds) })
    })
    .await
}

/// Lowers the priority of every thread of the workers; threads started later inherit it.
pub(super) fn be_nice(stage: &Stage<'_>) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot nice a worker: {error}"));
    for worker in stage.mesh.watch(&["export"]) {
        let threads = std::fs::read_dir(format!("/proc/{}/task", worker.pid));
        for thread in threads.map_err(|error| cannot(&error))?.flatten() {
            let number = thread.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            match setpriority_process(number, NICE) {
                // ESRCH: the thread has ended meanwhile.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(cannot(&error)),
            }
        }
    }
    Ok(())
}

fn section(rounds: &[Vec<Both>; SIDES.len()]) -> Section {
    let (mut rows, mut sides) = (Vec::new(), Vec::new());
    for ((_, name), rounds) in SIDES.iter().zip(rounds) {
        let middle = |of_round: &dyn Fn(&Both) -> f64| median(rounds.iter().map(of_round).collect());
        let rate = middle(&|both| both.reads.rate());
        let p50 = middle(&|both| both.reads.quantile_ms(0.5));
        let p99 = middle(&|both| both.reads.quantile_ms(0.99));
        let downloaded: Option<Vec<f64>> = rounds.iter().map(|both| both.downloaded).collect();
        let downloaded = downloaded.map(|rates| median(rates) / 1e6);
        let others: Option<Vec<f64>> = rounds.iter().map(|both| both.reads.others).collect();
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
        table::laid_out(&title, &["reads", "requests/s", "p50 ms", "p99 ms", "downloads MB/s"], &rows);
    Section::of("beside", &table, &sides, &[])
}
