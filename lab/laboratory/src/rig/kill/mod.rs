//! `mesh rig kill`: downloads under failing workers and beside other clients.
//!
//! A synthetic history is downloaded from three workers through one edge, in files of many sizes and at many
//! paces. Every byte is compared with the expected one, and the longest wait of each download is measured.
//!
//! Phases "kill" and "freeze": workers are killed and frozen during downloads. No client may see more than a
//! short wait.

mod stalled;

use std::{ops::Range, time::Duration};

use futures_util::FutureExt as _;
use mesh::failure::Failure;
use mesh_launcher::services::runnable;
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::Instant;

use super::{
    args::{PlayArgs, SLACK},
    clients::{download_results::longest_pause, downloaders::Downloaders},
    engine::{Drill, Phase, Play, Playing, phase},
    faults::{
        injector::{FaultInjector, InjectedFault},
        schedule::{Fault, ScheduledFault, Target, repeated},
    },
    report::Report,
    traffic::{any_file, files_are_whole},
    world::{Setup, World},
};
use crate::{private::UNCACHED_EDGE, synthetic::Synthetic};

pub(super) const DRILL: Drill = Drill {
    name: "kill",
    about: "Kills and freezes workers under downloads; downloads must complete",
    options: &[SLACK],
    play: Play::Phases(Playing {
        world: |options| setup(&options.play()),
        setup: |world| {
            let Synthetic { segments, .. } = world.play.either(PLAN);
            let megabytes = world.files.largest().bytes.len() / 1_000_000;
            format!("{WORKERS} workers, {segments} segments of {megabytes} MB in all")
        },
        becomes_normal: |world| Box::pin(world.mesh.until_serving(&[EXPORT, EDGE], TIMEOUT)),
        timeout: Duration::from_secs(600),
        phases: PHASES,
    }),
};

const PHASES: &[Phase] = &[
    phase("kill", "A worker is killed every second", |world, random| Box::pin(kill(world, random))),
    phase("freeze", "A worker is frozen and woken repeatedly", |world, random| {
        Box::pin(freeze(world, random))
    }),
    phase("stalled", "Thousands of clients read almost nothing", |world, _| {
        Box::pin(stalled::stalled(world))
    }),
];

/// The service under test.
const EXPORT: &str = "export";
/// The service in front of it.
const EDGE: &str = "edge";
const WORKERS: u32 = 3;
/// Number of concurrent downloads; fewer in the short form, whose debug builds on two processors that other drills use,
/// too, could only queue more.
const AT_ONCE: [usize; 2] = [64, 16];
/// Time limit of a download of the quick client, and of the last ones of others, for a loaded machine.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// The synthetic history of the long form and of the short one.
const PLAN: [Synthetic; 2] = [
    Synthetic { segments: 64, blocks: 1000, rows: 4000 },
    Synthetic { segments: 16, blocks: 1000, rows: 200 },
];
/// Number of ledger entries, and the block that they are in.
const ENTRIES: [u32; 2] = [20_000, 1_000];
const BLOCK: &str = "INSERT INTO blocks VALUES ('2024-01-01 00:00:00+00', 1, 'ab')";

/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(60);

fn setup(play: &PlayArgs) -> Setup {
    // Other services would only take processor time.
    let others = runnable(false).map(|service| service.name).filter(|name| ![EDGE, EXPORT].contains(name));
    let mut replicas: Vec<(&str, u32)> = others.map(|name| (name, 0)).collect();
    replicas.extend([(EXPORT, WORKERS), (UNCACHED_EDGE, 0)]);
    let files = (play.either(PLAN), play.either(ENTRIES));
    Setup { fill: &[BLOCK], files: Some(files), replicas, ..Setup::default() }
}

impl World<'_> {
    /// Downloads files of all kinds while faults are injected, at most `at_once` concurrently. Returns the
    /// report, in which no download fails and the 99th percentile of the longest pauses has a bound, and the
    /// repaired faults.
    async fn download_under(
        &self,
        phase: &str,
        schedule: impl Iterator<Item = ScheduledFault>,
        at_once: usize,
        bound: Duration,
    ) -> (Report, Vec<InjectedFault>) {
        let injector = FaultInjector::new(self.mesh);
        let (count, longest) = self.play.either(DOWNLOADS);
        let kinds = [(self.play.either(AT_ONCE), any_file(self, longest))];
        let clients = Downloaders::start(self.edges.cached, &kinds, Duration::ZERO, self.seed);
        let ended = async move {
            clients.until_finished(count).await;
            clients.end(DOWNLOAD_TIMEOUT).await
        };
        let ended = ended.boxed_local().shared();
        injector.run_until(schedule, at_once, ended.clone().map(drop)).await;
        let mut faults = injector.injected();
        faults.retain(|fault| fault.is_repaired);
        let (results, files) = ended.await;
        let mut report = Report::of_downloads(phase, &results);
        report.none_fails(&results);
        files_are_whole(&files, &mut report);
        let pause = longest_pause(&results, 0.99);
        report.bar_at_most("longest pause of 99 in 100", pause, self.play.bound(bound));
        (report, faults)
    }
}

/// Least number of downloads in the long form and in the short one, and the longest duration of a slow one.
const DOWNLOADS: [(usize, Duration); 2] = [(1000, Duration::from_secs(6)), (100, Duration::from_secs(3))];
/// Interval of kills, and of freezes.
const HIT_EVERY: Duration = Duration::from_secs(1);
/// Least number of kills a second on average; fewer mean that workers restart too slowly.
const KILLS_A_SECOND: f64 = 0.8;
/// Greatest 99th percentile of the clients' longest waits during kills, and during freezes.
const KILLED_PAUSE: Duration = Duration::from_secs(1);
const FROZEN_PAUSE: Duration = Duration::from_millis(1500);
const FROZEN_MS: Range<u64> = 1_500..2_500;

/// Kills one worker after the other. The next kill waits until all workers are ready: otherwise slow starts
/// would leave none.
async fn kill(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let begun = Instant::now();
    let schedule = repeated(HIT_EVERY, || Fault::Kill(worker(random.random_range(0..WORKERS))));
    let (mut report, kills) = world.download_under("kill", schedule, 1, KILLED_PAUSE).await;
    let seconds = begun.elapsed().as_secs();
    let kills = kills.len() as u64;
    let least = (seconds as f64 * world.play.share(KILLS_A_SECOND)) as u64;
    report.bar(format!("workers killed in {seconds} s: {kills}, at least {least}"), kills >= least.max(1));
    Ok(report)
}

/// Freezes and wakes workers; at least one is always awake.
async fn freeze(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.pids(EXPORT);
    let mut replica = random.random_range(0..WORKERS);
    let schedule = repeated(HIT_EVERY, || {
        // In turns: a worker is awake when it is frozen again.
        replica = (replica + 1) % WORKERS;
        Fault::Freeze(worker(replica), Duration::from_millis(random.random_range(FROZEN_MS)))
    });
    let at_once = WORKERS as usize - 1;
    let (mut report, freezes) = world.download_under("freeze", schedule, at_once, FROZEN_PAUSE).await;
    let count = freezes.len();
    report.bar(format!("workers frozen meanwhile: {count}, at least 2"), count >= 2);
    report.bar("no frozen worker was restarted", world.mesh.pids(EXPORT) == before);
    Ok(report)
}

fn worker(replica: u32) -> Target {
    Target { name: EXPORT, replica }
}
