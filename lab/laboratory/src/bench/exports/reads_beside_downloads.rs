//! Section "beside": reads of single rows at a fixed rate, alone, during four downloads at full speed, and
//! during such downloads from workers with low scheduling priority.

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
    terminal::print_line,
};
use mesh_launcher::control::Request;
use rustix::process::{Pid, setpriority_process};

use super::{
    super::{
        comparison::{ROUNDS, run_blocking},
        load::Load,
        meter::Round,
        section::{Line, Section, median, median_if_known},
        sections::SectionName,
    },
    Fixture, READ_PERIOD, READERS,
    drain::Drain,
    path,
};

const DOWNLOADS: usize = 4;
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

/// Runs the measurement.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("reading single rows beside downloads");
    let load = fixture.paced_reads(fixture.length).await?;
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
        Ok(RoundResult { reads, downloaded: Some(moved.rate()) })
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
    let line = |((_, name), rounds): (&(Background, &str), &Vec<RoundResult>)| {
        let middle =
            |of_reads: &dyn Fn(&Round) -> f64| median(rounds.iter().map(|result| of_reads(&result.reads)));
        let downloaded = median_if_known(rounds.iter().map(|result| result.downloaded));
        let others = median_if_known(rounds.iter().map(|result| result.reads.spent.others));
        Line::new("reads", name)
            .value(("requests/s", "requestsPerSecond"), 0, middle(&Round::rate))
            .value(("p50 ms", "p50Ms"), 3, middle(&|reads| reads.quantile_ms(0.5)))
            .value(("p99 ms", "p99Ms"), 3, middle(&|reads| reads.quantile_ms(0.99)))
            .value(("downloads MB/s", "downloadedMegabytesPerSecond"), 1, downloaded.map(|bytes| bytes / 1e6))
            .figure("othersPercent", others.map(|share| 100.0 * share))
    };
    let lines: Vec<Line> = SIDES.iter().zip(rounds).map(line).collect();
    let title = format!(
        "beside: {READERS} connections, each a single row every {} ms, medians of {ROUNDS} rounds in turns",
        READ_PERIOD.as_millis()
    );
    Section::new(SectionName::Beside, &title, &lines, "", &[])
}
