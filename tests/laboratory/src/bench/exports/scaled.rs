//! Section "scaled": workers come and go under downloads that never stop, giving way to everybody else; what
//! they say of their load, from which an autoscaler takes how many there should be; and single rows that are
//! read beside them.

use std::time::Duration;

use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::control::Request;
use serde_json::json;

use super::{
    super::{
        Section,
        bar::{Bar, Must},
        contest::rounded,
        load::{Asks, Load, Round},
    },
    Stage, apart,
    beside::{CONNECTIONS, PERIOD, be_nice},
    drain::Drain,
    path, withdrawals,
};
use crate::{metrics, table};

const DOWNLOADS: usize = 4;
/// What each takes a second at most: downloads that take all of the machine leave nothing to be seen of the
/// reads.
const BYTES_A_SECOND: u32 = 10_000_000;
/// How many workers there are, one number after the other.
const STEPS: [u32; 6] = [1, 2, 3, 4, 2, 1];
/// Each step takes this long at least: what workers say of their load is an average of a quarter of a minute.
const STEP_AT_LEAST: Duration = Duration::from_secs(20);
/// The load of one worker that the autoscaler of this benchmark aims at.
const LOAD_OF_A_WORKER: f64 = 8.0;
/// What a worker says of its load.
const LOAD: &str = "mesh_requests_load";

/// What one step found.
struct Step {
    workers: u32,
    reads: Round,
    /// Bytes a second of all downloads.
    downloaded: f64,
    /// What all workers said of their load at the end.
    load: f64,
}

/// Measures, and fails when one download broke.
pub(super) async fn measure(stage: &Stage<'_>) -> Result<Section, Failure> {
    print_line("scaling workers under downloads");
    let rows = withdrawals::paths(&stage.servers, withdrawals::ROWS).await?;
    let length = stage.length.max(STEP_AT_LEAST);
    let load = Load {
        address: stage.edges.uncached,
        asks: Asks::Paths(rows),
        connections: CONNECTIONS,
        length,
        period: Some(PERIOD),
    };
    let paths = vec![path(stage.history.few, 0); DOWNLOADS];
    let downloads = Drain::paced(stage.edges.cached, &paths, Some(BYTES_A_SECOND));
    let mut steps = Vec::new();
    for workers in STEPS {
        let load = load.clone();
        let before = downloads.bytes();
        let reads = async { apart(move || load.run(&[])).await };
        let scaled = async {
            stage.order(Request::Scale { name: "export".to_owned(), replicas: workers }).await?;
            stage.mesh.ready(&["export"]).await?;
            be_nice(stage)
        };
        let (reads, ()) = tokio::try_join!(reads, scaled)?;
        let downloaded = (downloads.bytes() - before) as f64 / reads.seconds;
        steps.push(Step { workers, reads, downloaded, load: said_load(stage).await? });
    }
    apart(move || downloads.stop()).await?;
    Ok(section(&steps))
}

/// What all workers say of their load.
async fn said_load(stage: &Stage<'_>) -> Result<f64, Failure> {
    let mut load = 0.0;
    for row in stage.mesh.supervisor.rows().iter().filter(|row| row.service == "export") {
        let page = metrics::of(row).await;
        load += metrics::sum(&page.ok_or_else(|| Failure::failed("a worker does not tell its load"))?, LOAD);
    }
    Ok(load)
}

/// How many workers an autoscaler would want: so many that each has no more than its load.
fn wanted(load: f64) -> u32 {
    (load / LOAD_OF_A_WORKER).ceil().max(1.0) as u32
}

fn section(steps: &[Step]) -> Section {
    let (mut rows, mut sides) = (Vec::new(), Vec::new());
    for step in steps {
        let (p50, p99) = (step.reads.quantile_ms(0.5), step.reads.quantile_ms(0.99));
        let downloaded = step.downloaded / 1e6;
        rows.push(vec![
            step.workers.to_string(),
            format!("{downloaded:.0}"),
            format!("{:.1}", step.load),
            wanted(step.load).to_string(),
            format!("{p50:.3}"),
            format!("{p99:.3}"),
        ]);
        sides.push(json!({
            "workers": step.workers, "downloadedMegabytesPerSecond": rounded(downloaded), "load": rounded(step.load),
            "wantedWorkers": wanted(step.load), "p50Ms": rounded(p50), "p99Ms": rounded(p99),
        }));
    }
    let p99_of = |workers: u32| {
        let of_steps = steps.iter().filter(|step| step.workers == workers);
        of_steps.map(|step| step.reads.quantile_ms(0.99)).fold(f64::INFINITY, f64::min)
    };
    let bar = Bar {
        what: "p99 of reads beside 4 workers / beside 1".to_owned(),
        found: p99_of(4) / p99_of(1),
        must: Must::Keep(1.25),
        aim: 1.0,
    };
    let title = format!(
        "scaled: {DOWNLOADS} downloads without an end at {} MB/s each, none broke; workers niced; an autoscaler wants \
         a load of {LOAD_OF_A_WORKER} per worker",
        BYTES_A_SECOND / 1_000_000
    );
    let heading = ["workers", "downloads MB/s", "their load", "wanted", "reads p50 ms", "p99 ms"];
    Section::of("scaled", &table::laid_out(&title, &heading, &rows), &sides, &[bar])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_are_wanted_as_keep_their_load() {
        assert_eq!([0.0, 8.0, 8.1, 40.0].map(wanted), [1, 1, 2, 5]);
    }
}
