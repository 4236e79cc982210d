//! Section "scaled": the number of export workers changes during continuous downloads, with workers at low
//! priority. Measures the workers' load metric, from which an autoscaler computes their number, and reads of
//! single rows meanwhile.

use std::time::Duration;

use mesh::{failure::Failure, terminal::print_line};

use super::{
    super::{
        comparison::run_blocking,
        meter::Round,
        section::{Line, Section},
        sections::SectionName,
    },
    Fixture,
    drain::Drain,
    path,
    reads_beside_downloads::lower_priority,
};
use crate::metrics;

const DOWNLOADS: usize = 4;
/// Rate limit of each download, bytes a second: unlimited downloads would use all of the machine and hide the
/// effect on the reads.
const BYTES_A_SECOND: u32 = 10_000_000;
/// Number of workers in each step.
const STEPS: [u32; 6] = [1, 2, 3, 4, 2, 1];
/// Least length of a step: the load metric is an average over 15 seconds.
const STEP_AT_LEAST: Duration = Duration::from_secs(20);
/// Target load per worker of the simulated autoscaler.
const LOAD_OF_A_WORKER: f64 = 8.0;
/// The workers' load metric.
const LOAD: &str = "mesh_requests_load";

/// The results of one step.
struct Step {
    workers: u32,
    reads: Round,
    /// Rate of all downloads together, bytes a second.
    downloaded: f64,
    /// Sum of the workers' load metrics at the end of the step.
    load: f64,
}

/// Runs the steps.
///
/// # Errors
/// When a download breaks.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("scaling workers under downloads");
    let load = fixture.paced_reads(fixture.length.max(STEP_AT_LEAST)).await?;
    let paths = vec![path(fixture.history.few, 0); DOWNLOADS];
    let downloads = Drain::with_limit(fixture.edges.cached, &paths, Some(BYTES_A_SECOND));
    let mut steps = Vec::new();
    for workers in STEPS {
        let load = load.clone();
        let before = downloads.bytes();
        let reads = async { run_blocking(move || load.run(&[])).await };
        let scaled = async {
            fixture.scale(workers).await?;
            lower_priority(fixture)
        };
        let (reads, ()) = tokio::try_join!(reads, scaled)?;
        let downloaded = (downloads.bytes() - before) as f64 / reads.spent.seconds;
        steps.push(Step { workers, reads, downloaded, load: load_metric(fixture).await? });
    }
    run_blocking(move || downloads.stop()).await?;
    Ok(section(&steps))
}

/// Sum of the workers' load metrics.
async fn load_metric(fixture: &Fixture<'_>) -> Result<f64, Failure> {
    let mut load = 0.0;
    for row in fixture.mesh.supervisor.rows().iter().filter(|row| row.service == "export") {
        let page = metrics::fetch(row).await;
        load +=
            metrics::sum(&page.ok_or_else(|| Failure::failed("a worker's load metric is missing"))?, LOAD);
    }
    Ok(load)
}

/// Number of workers that an autoscaler would choose for this load.
fn wanted_workers(load: f64) -> u32 {
    (load / LOAD_OF_A_WORKER).ceil().max(1.0) as u32
}

fn section(steps: &[Step]) -> Section {
    let line = |step: &Step| {
        Line::new("workers", &step.workers.to_string())
            .value(("downloads MB/s", "downloadedMegabytesPerSecond"), 0, step.downloaded / 1e6)
            .value(("their load", "load"), 1, step.load)
            .value(("wanted", "wantedWorkers"), 0, f64::from(wanted_workers(step.load)))
            .value(("reads p50 ms", "p50Ms"), 3, step.reads.quantile_ms(0.5))
            .value(("p99 ms", "p99Ms"), 3, step.reads.quantile_ms(0.99))
            .figure("workers", step.workers)
    };
    let p99_of = |workers: u32| {
        let of_steps = steps.iter().filter(|step| step.workers == workers);
        of_steps.map(|step| step.reads.quantile_ms(0.99)).fold(f64::INFINITY, f64::min)
    };
    let title = format!(
        "scaled: {DOWNLOADS} downloads without an end at {} MB/s each, none broke; workers niced; an autoscaler wants \
         a load of {LOAD_OF_A_WORKER} per worker",
        BYTES_A_SECOND / 1_000_000
    );
    let found = ("p99 of reads beside 4 workers / beside 1".to_owned(), p99_of(4) / p99_of(1));
    let lines: Vec<Line> = steps.iter().map(line).collect();
    Section::new(SectionName::Scaled, &title, &lines, "", &[found])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_are_wanted_as_keep_their_load() {
        assert_eq!([0.0, 8.0, 8.1, 40.0].map(wanted_workers), [1, 1, 2, 5]);
    }
}
