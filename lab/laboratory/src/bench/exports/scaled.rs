//! Section "scaled": downloads while the number of export workers changes. Measures their speed, the workers'
//! load metric, from which an autoscaler computes their number, and reads of single rows meanwhile.

use std::{sync::Arc, time::Duration};

use mesh::failure::Failure;
use mesh_launcher::control::Request;
use rustix::process::{Pid, setpriority_process};

use super::{
    super::{
        comparison::run_blocking,
        load::{Load, Pace, Requests},
        meter::Round,
        section::{Figures, Line, median},
        world::World,
    },
    drain::Drain,
    path,
};

/// Downloads that continue while the number of workers changes.
struct Phase {
    name: &'static str,
    downloads: usize,
    /// Rate limit of each download. Without one, downloads use all of the machine and hide the effect of
    /// workers on the reads.
    bytes_a_second: Option<u32>,
    /// Whether the workers have a low priority, and are scaled during the reads.
    is_niced: bool,
    /// Least length of a step.
    at_least: Duration,
    /// Number of workers in each step.
    workers: &'static [u32],
}

/// The load metric is an average over 15 seconds.
const LOAD_SETTLES: Duration = Duration::from_secs(20);
const FULL_SPEED: Phase = Phase {
    name: "8 at full speed",
    downloads: 8,
    bytes_a_second: None,
    is_niced: false,
    at_least: Duration::ZERO,
    workers: &[4, 1, 4, 1, 4, 1],
};
const LIMITED: Phase = Phase {
    name: "4 at 10 MB/s",
    downloads: 4,
    bytes_a_second: Some(10_000_000),
    is_niced: true,
    at_least: LOAD_SETTLES,
    workers: &[1, 2, 3, 4, 2, 1],
};

/// Connections of the reads, and the time between two requests of each: 400 requests a second in all.
const READERS: u64 = 8;
const READ_PERIOD: Duration = Duration::from_millis(20);
/// Nice value of workers with a low priority.
const NICE_VALUE: i32 = 10;
/// Target load per worker of the simulated autoscaler.
const LOAD_OF_A_WORKER: f64 = 8.0;
const LOAD: &str = "mesh_requests_load";

struct Step {
    workers: u32,
    reads: Round,
    /// Rate of all downloads together, bytes a second.
    downloaded: f64,
    /// Sum of the workers' load metrics at the end of the step.
    load: f64,
}

/// Runs the phases.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let full_speed = play(world, &FULL_SPEED).await?;
    // A worker's priority cannot be raised again: this phase is the last one.
    let limited = play(world, &LIMITED).await?;
    let lines = full_speed.iter().map(|step| step.line(&FULL_SPEED));
    let lines = lines.chain(limited.iter().map(|step| step.line(&LIMITED))).collect();
    let of = |steps: &[Step], workers, figure: fn(&Step) -> f64| {
        steps.iter().filter(|step| step.workers == workers).map(figure).collect::<Vec<_>>()
    };
    let rate = |workers| median(of(&full_speed, workers, |step| step.downloaded));
    let p99_ms = |workers| {
        let all = of(&limited, workers, |step| step.reads.quantile_ms(0.99));
        all.into_iter().fold(f64::INFINITY, f64::min)
    };
    let title = format!(
        "downloads without an end; a single row every {} ms over {READERS} connections; an autoscaler wants a \
         load of {LOAD_OF_A_WORKER} per worker",
        READ_PERIOD.as_millis()
    );
    let found = vec![rate(4) / rate(1), p99_ms(4) / p99_ms(1)];
    Ok(Figures { title, lines, found, ..Figures::default() })
}

async fn play(world: &World<'_>, phase: &Phase) -> Result<Vec<Step>, Failure> {
    let (few, edges) = (world.history().await?.few, world.edges().await?);
    let requests = Requests::Paths(world.withdrawals().await?);
    let length = world.length().max(phase.at_least);
    let pace = Pace { clients: READERS, length, period: Some(READ_PERIOD) };
    let load = Load::new(edges.uncached, requests, pace);
    let paths = vec![path(few); phase.downloads];
    let downloads = Drain::start(edges.cached, &paths, phase.bytes_a_second);
    let mut steps = Vec::new();
    for &workers in phase.workers {
        if !phase.is_niced {
            scale(world, workers).await?;
        }
        let (received, load) = (Arc::clone(&downloads.received), load.clone());
        let reads = run_blocking(move || load.run(&[]));
        let received = run_blocking(move || Ok(received.measure("downloads", &[], length)));
        let niced = async {
            if phase.is_niced {
                scale(world, workers).await?;
                lower_priority(world)?;
            }
            Ok(())
        };
        let (reads, received, ()) = tokio::try_join!(reads, received, niced)?;
        let load = world.mesh.metric("export", LOAD).await;
        let load = load.ok_or_else(|| Failure::failed("a worker's load metric is missing"));
        steps.push(Step { workers, reads, downloaded: received.rate(), load: load? });
    }
    run_blocking(move || downloads.stop()).await?;
    Ok(steps)
}

impl Step {
    fn line(&self, phase: &Phase) -> Line {
        let wanted = (self.load / LOAD_OF_A_WORKER).ceil().max(1.0);
        Line::new("downloads", phase.name)
            .value("workers", self.workers.into())
            .value("MB/s", self.downloaded / 1e6)
            .value("their load", self.load)
            .value("wanted", wanted)
            .value("reads p50 ms", self.reads.quantile_ms(0.5))
            .value("p99 ms", self.reads.quantile_ms(0.99))
    }
}

/// Sets the number of workers, as the command line does, and waits until they are ready.
async fn scale(world: &World<'_>, replicas: u32) -> Result<(), Failure> {
    let request = Request::Scale { name: "export".to_owned(), replicas };
    world.mesh.order(request).await?;
    world.mesh.ready(&["export"]).await
}

/// Lowers the priority of every thread of the workers; threads started later inherit it.
fn lower_priority(world: &World<'_>) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot nice a worker: {error}"));
    for worker in world.mesh.watch(&["export"]) {
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
