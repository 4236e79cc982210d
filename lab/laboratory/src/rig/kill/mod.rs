//! `mesh rig kill`: downloads under failing workers, servers and other clients.
//!
//! A synthetic history is downloaded from three workers through one edge, in files of many sizes and at many
//! paces. Every byte is compared with the expected one, and the longest wait of each download is measured.
//!
//! Phases "kill", "freeze", "scale", "nats" and "postgres": workers are killed, frozen and removed, and servers
//! fail, during downloads. No client may see more than a short wait when a worker fails. Without the database
//! downloads of the history continue; without the bus they may fail, but never end as if complete.

mod large;
mod stalled;

use std::{ops::Range, time::Duration};

use futures_util::FutureExt as _;
use mesh::{failure::Failure, processes::POSTGRES};
use mesh_launcher::{control::Request, services::runnable};
use mesh_testbed::poll;
use rand::{Rng as _, rngs::SmallRng};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{
    args::{PlayArgs, SLACK},
    clients::{
        download::{Download, Pace},
        download_results::{DownloadResult, Outcome, longest_pause},
        downloaders::Downloaders,
        files::{ExpectedFile, Files, SEGMENTS},
    },
    engine::{Drill, Phase, Play, Playing, one, phase},
    faults::{
        injector::{FaultInjector, InjectedFault},
        schedule::{BUS, Fault, ScheduledFault, Target, repeated},
    },
    report::Report,
    world::{Setup, World},
};
use crate::{private::UNCACHED_EDGE, synthetic::Synthetic};

/// Number of downloads in the phase without faults, and the longest duration of a slow one.
const STEADY: [(usize, Duration); 2] = [(300, Duration::from_secs(2)), (40, Duration::from_secs(2))];

pub(super) const DRILL: Drill = Drill {
    name: "kill",
    about: "Kills workers and servers under downloads; downloads must complete",
    options: &[SLACK],
    play: Play::Phases(Playing {
        world: |options| setup(&options.play()),
        setup: |world| {
            let (megabytes, segments) =
                (world.files.largest().bytes.len() / 1_000_000, world.files.plan().segments);
            format!("{WORKERS} workers, {segments} segments of {megabytes} MB in all")
        },
        becomes_normal: |world| Box::pin(world.downloads_are_normal()),
        // Enough for writing and reading ten gigabytes.
        timeout: Duration::from_secs(1200),
        phases: PHASES,
    }),
};

const PHASES: &[Phase] = &[
    phase("steady", "No fault", |world, random| one(steady(world, random))),
    phase("kill", "A worker is killed every second", |world, random| one(kill(world, random))),
    phase("freeze", "A worker is frozen and woken repeatedly", |world, random| one(freeze(world, random))),
    phase("nats", "The bus is killed and restarted", |world, random| one(nats(world, random))),
    phase("postgres", "The database is unavailable", |world, random| one(postgres(world, random))),
    phase("scale", "A worker is removed during many downloads", |world, random| one(scale(world, random))),
    phase("stalled", "Thousands of clients read almost nothing", |world, _| one(stalled::stalled(world))),
    phase("large", "Downloads of many gigabytes, over HTTP and over gRPC", |world, _| {
        Box::pin(large::large(world))
    }),
];

async fn steady(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let downloads = mixed(world, random, STEADY, Files::any);
    let results = world.start_downloads(downloads, world.at_once()).results().await;
    let mut report = Report::of_downloads("steady", &results);
    report.none_fails(&results);
    Ok(report)
}

/// The service under test.
const EXPORT: &str = "export";
/// The service in front of it.
const EDGE: &str = "edge";
/// Number of workers.
const WORKERS: u32 = 3;
/// Number of concurrent downloads; fewer in the short form, whose debug builds on two processors that other drills use,
/// too, could only queue more.
const AT_ONCE: [usize; 2] = [64, 16];
/// Time limit of a download, for a loaded machine.
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
/// Timeout of one request in that check.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The world of the drill.
fn setup(play: &PlayArgs) -> Setup {
    // Other services would only take processor time.
    let others = runnable(false).map(|service| service.name).filter(|name| ![EDGE, EXPORT].contains(name));
    let mut replicas: Vec<(&str, u32)> = others.map(|name| (name, 0)).collect();
    replicas.extend([(EXPORT, WORKERS), (UNCACHED_EDGE, 0)]);
    let files = (play.either(PLAN), play.either(ENTRIES));
    Setup { fill: &[BLOCK], files: Some(files), replicas, ..Setup::default() }
}

impl World<'_> {
    fn at_once(&self) -> usize {
        self.play.either(AT_ONCE)
    }

    /// Starts downloads, at most `at_once` concurrently.
    fn start_downloads(&self, downloads: Vec<(ExpectedFile, Pace)>, at_once: usize) -> Downloaders {
        let time_limit = DOWNLOAD_TIMEOUT.max(self.play.bound(DOWNLOAD_TIMEOUT / 2));
        Downloaders::start_list(self.edges.cached, downloads, at_once, Duration::ZERO, time_limit)
    }

    /// Downloads files, [`World::at_once`] concurrently, while faults are injected, at most `at_once` concurrently.
    /// Returns the results, and the repaired faults.
    async fn download_under(
        &self,
        downloads: Vec<(ExpectedFile, Pace)>,
        schedule: impl Iterator<Item = ScheduledFault>,
        at_once: usize,
    ) -> (Vec<DownloadResult>, Vec<InjectedFault>) {
        let injector = FaultInjector::new(self.mesh);
        let results = self.start_downloads(downloads, self.at_once()).results().boxed_local().shared();
        injector.run_until(schedule, at_once, results.clone().map(drop)).await;
        let mut faults = injector.injected();
        faults.retain(|fault| fault.is_repaired);
        (results.await, faults)
    }

    /// Waits until all workers are ready, list every segment, and serve the whole history and a ledger; returns
    /// whether they do.
    async fn downloads_are_normal(&self) -> bool {
        poll(TIMEOUT, async || if self.is_normal().await { Ok(()) } else { Err(()) }).await.is_ok()
    }

    async fn is_normal(&self) -> bool {
        let is_ready =
            |name: &str, replicas| self.mesh.serves(name) && self.mesh.pids(name).len() == replicas;
        let segments = self.files.plan().segments;
        if !is_ready(EXPORT, WORKERS as usize) || !is_ready(EDGE, 1) || self.listed().await != Ok(segments) {
            return false;
        }
        let files = [(self.files.largest(), Some("0-0"), 206), (self.files.ledger(), None, 200)];
        // Several requests, so that every worker is likely to answer one of each kind.
        for _ in 0..2 * WORKERS {
            for (file, range, status) in &files {
                let opening = Download::open(self.edges.cached, &file.path, *range, None);
                let Ok(Ok(opened)) = timeout(ANSWER_WITHIN, opening).await else { return false };
                let is_of = file.etag.is_none() || opened.head.header("etag") == file.etag.as_deref();
                if opened.head.status != *status || !is_of {
                    return false;
                }
            }
        }
        true
    }

    /// Number of segments listed, or the failure text.
    async fn listed(&self) -> Result<u64, String> {
        let listed = timeout(ANSWER_WITHIN, async {
            let mut download = Download::open(self.edges.cached, SEGMENTS, None, None).await?;
            let text = download.text().await?;
            let listing: Value = serde_json::from_str(&text).unwrap_or_default();
            match (download.head.status, listing["segments"].as_array()) {
                (200, Some(segments)) => Ok(segments.len() as u64),
                (status, _) => Err(format!("{status} {text}")),
            }
        });
        listed.await.unwrap_or_else(|_| Err(format!("no listing within {ANSWER_WITHIN:?}")))
    }
}

/// The same while workers are killed or frozen.
const DOWNLOADS: [(usize, Duration); 2] = [(1000, Duration::from_secs(6)), (100, Duration::from_secs(3))];
/// The same while a server fails.
const SERVER_DOWNLOADS: [(usize, Duration); 2] =
    [(300, Duration::from_secs(6)), (60, Duration::from_secs(3))];
/// Interval of kills, and of freezes.
const HIT_EVERY: Duration = Duration::from_secs(1);
/// Least number of kills a second on average; fewer mean that workers restart too slowly.
const KILLS_A_SECOND: f64 = 0.8;
/// Greatest 99th percentile of the clients' longest waits during kills, and during freezes.
const KILLED_PAUSE: Duration = Duration::from_secs(1);
const FROZEN_PAUSE: Duration = Duration::from_millis(1500);
/// Length of a freeze, milliseconds.
const FROZEN_MS: Range<u64> = 1_500..2_500;

/// Number of downloads in progress when a worker is removed, and duration and size of each.
const LEFT: [usize; 2] = [200, 40];
const LEFT_TAKES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(4)];
const LEFT_BYTES: [usize; 2] = [8 << 20, 1 << 20];
/// Longest time until the removed worker has ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Number of kills of the bus, and the time before each, milliseconds.
const BUS_KILLS: [u32; 2] = [3, 1];
const BETWEEN_MS: Range<u64> = 500..2_000;
/// Interval of listing the segments meanwhile.
const LIST_EVERY: Duration = Duration::from_millis(50);

/// Kills one worker after the other. The next kill waits until all workers are ready: otherwise slow starts
/// would leave none.
async fn kill(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (begun, downloads) = (Instant::now(), mixed(world, random, DOWNLOADS, Files::any));
    let schedule = repeated(HIT_EVERY, || Fault::Kill(worker(random.random_range(0..WORKERS))));
    let (results, kills) = world.download_under(downloads, schedule, 1).await;
    let seconds = begun.elapsed().as_secs();
    let mut report = without_failures("kill", &results, world.play.bound(KILLED_PAUSE));
    let kills = kills.len() as u64;
    let least = (seconds as f64 * world.play.share(KILLS_A_SECOND)) as u64;
    report.bar(format!("workers killed in {seconds} s: {kills}, at least {least}"), kills >= least.max(1));
    Ok(report)
}

/// Freezes and wakes workers; at least one is always awake.
async fn freeze(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.pids(EXPORT);
    let downloads = mixed(world, random, DOWNLOADS, Files::any);
    let schedule = repeated(HIT_EVERY, || {
        let time = Duration::from_millis(random.random_range(FROZEN_MS));
        Fault::Freeze(worker(random.random_range(0..WORKERS)), time)
    });
    // A worker that is still frozen is skipped.
    let mut frozen_until = [Duration::ZERO; WORKERS as usize];
    let schedule = schedule.filter(|ScheduledFault { at, fault }| {
        let Fault::Freeze(Target { replica, .. }, time) = fault else { return true };
        let until = &mut frozen_until[*replica as usize];
        let is_awake = *until <= *at;
        if is_awake {
            *until = *at + *time;
        }
        is_awake
    });
    let (results, freezes) = world.download_under(downloads, schedule, WORKERS as usize - 1).await;
    let count = freezes.len();
    let mut report = without_failures("freeze", &results, world.play.bound(FROZEN_PAUSE));
    report.bar(format!("workers frozen meanwhile: {count}, at least 2"), count >= 2);
    report.bar("no frozen worker was restarted", world.mesh.pids(EXPORT) == before);
    Ok(report)
}

/// A report in which no download fails, and whose 99th percentile of the longest pauses has a bound.
fn without_failures(phase: &str, results: &[DownloadResult], bound: Duration) -> Report {
    let mut report = Report::of_downloads(phase, results);
    report.none_fails(results);
    report.bar_at_most("longest pause of 99 in 100", longest_pause(results, 0.99), bound);
    report
}

fn worker(replica: u32) -> Target {
    Target { name: EXPORT, replica }
}

/// Removes one of three workers, as an autoscaler does, during many downloads.
async fn scale(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let play = &world.play;
    let (count, takes, bytes) = (play.either(LEFT), play.either(LEFT_TAKES), play.either(LEFT_BYTES));
    let downloads = (0..count).map(|_| {
        let expected = world.files.part(bytes, random);
        let pace = Pace::within(expected.bytes.len(), takes);
        (expected, pace)
    });
    let downloads = world.start_downloads(downloads.collect(), count);
    downloads.until_reading(count).await?;
    let to = |replicas| Request::Scale { name: EXPORT.to_owned(), replicas };
    let begun = Instant::now();
    world.mesh.order(to(WORKERS - 1)).await?;
    let (took, reading) = (begun.elapsed(), downloads.reading());
    let left = world.mesh.pids(EXPORT).len();
    let results = downloads.results().await;
    world.mesh.order(to(WORKERS)).await?;
    let mut report = Report::of_downloads("scale", &results);
    report.none_fails(&results);
    report.bar_at_most("the worker is gone", took, world.play.bound(GONE_WITHIN));
    report.bar(format!("{left} workers are left of {WORKERS}"), left + 1 == WORKERS as usize);
    report.notes.push(format!(
        "{count} downloads were in progress when its stop was requested, {reading} when it had ended"
    ));
    Ok(report)
}

/// Kills the bus a few times; the supervisor restarts it.
async fn nats(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.service_pids();
    let downloads = mixed(world, random, SERVER_DOWNLOADS, Files::any);
    let mut at = Duration::ZERO;
    let kills = (0..world.play.either(BUS_KILLS)).map(|_| {
        at += Duration::from_millis(random.random_range(BETWEEN_MS));
        ScheduledFault { at, fault: Fault::Kill(BUS) }
    });
    let (results, _) = world.download_under(downloads, kills, 1).await;
    let is_normal = world.downloads_are_normal().await;
    let mut report = Report::of_downloads("nats", &results);
    report.none_is_wrong(&results);
    report.bar("service is as usual afterwards", is_normal);
    report.bar("no service was restarted", world.mesh.service_pids() == before);
    Ok(report)
}

/// Stops the database during downloads.
async fn postgres(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.service_pids();
    world.mesh.stop_all(POSTGRES).await?;
    let downloads = mixed(world, random, SERVER_DOWNLOADS, Files::any_of_history);
    let downloads = world.start_downloads(downloads, world.at_once());
    let (mut listed, mut unlisted) = (0_u32, Vec::new());
    let lists = async {
        let mut ticks = interval(LIST_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match world.listed().await {
                Ok(count) if count == world.files.plan().segments => listed += 1,
                Ok(count) => unlisted.push(format!("{count} segments are listed")),
                Err(why) => unlisted.push(format!("the segments are not listed: {why}")),
            }
        }
    };
    let results = tokio::select! {
        results = downloads.results() => results,
        () = lists => Vec::new(),
    };
    let ledger = world.start_downloads(vec![(world.files.ledger(), Pace::QUICK)], 1).results().await;
    world.mesh.start_all(POSTGRES).await?;
    world.servers.database_is_back().await?;
    let mut report = Report::of_downloads("postgres", &results);
    report.none_fails(&results);
    let listings = listed as usize + unlisted.len();
    report.bar_none_of("listings that failed", unlisted.len(), listings);
    report.bar(
        "a ledger, which needs the database, is refused or breaks",
        ledger.iter().all(|result| matches!(result.outcome, Outcome::Refused(_) | Outcome::Broken(_))),
    );
    report.bar("no service was restarted", world.mesh.service_pids() == before);
    report.messages.extend(unlisted);
    Ok(report)
}

/// Random downloads of all kinds and paces, so many in the long form and in the short one; slow ones take up to this
/// long there.
fn mixed(
    world: &World<'_>,
    random: &mut SmallRng,
    amount: [(usize, Duration); 2],
    any: fn(&Files, &mut SmallRng) -> ExpectedFile,
) -> Vec<(ExpectedFile, Pace)> {
    let (count, longest) = world.play.either(amount);
    let download = |_| {
        let expected = any(&world.files, random);
        let pace = Pace::any(expected.bytes.len(), longest, random);
        (expected, pace)
    };
    (0..count).map(download).collect()
}
