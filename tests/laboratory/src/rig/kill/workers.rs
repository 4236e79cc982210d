//! Phases "kill", "freeze" and "scale": workers are killed, frozen and removed during downloads. No client
//! may see more than a short wait.

use std::time::Duration;

use mesh::failure::Failure;
use mesh_launcher::control::Request;
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::Instant;

use crate::rig::{
    clients::{
        files::{ExpectedFile, Files},
        transfer::Pace,
    },
    faults::schedule::{Fault, Target, repeated},
    kill::{
        Report,
        fixture::{EXPORT, Fixture, WORKERS},
    },
};

/// Number of downloads during kills, and during freezes.
const DOWNLOADS: usize = 1000;
const DOWNLOADS_SHORT: usize = 100;
/// Longest duration of a slow download.
const SLOW: Duration = Duration::from_secs(6);
const SLOW_SHORT: Duration = Duration::from_secs(3);
/// Interval of kills, and of freezes.
const HIT_EVERY: Duration = Duration::from_secs(1);
/// Least number of kills a second on average; fewer mean that workers restart too slowly.
const KILLS_A_SECOND: f64 = 0.8;
/// Greatest 99th percentile of the clients' longest waits during kills, and during freezes.
const KILLED_PAUSE: Duration = Duration::from_secs(1);
const FROZEN_PAUSE: Duration = Duration::from_millis(1500);
/// Length of a freeze, milliseconds.
const FROZEN_MS: std::ops::Range<u64> = 1_500..2_500;

/// Number of downloads in progress when a worker is removed, and duration and size of each.
const LEFT: usize = 200;
const LEFT_SHORT: usize = 40;
const LEFT_TAKES: Duration = Duration::from_secs(10);
const LEFT_TAKES_SHORT: Duration = Duration::from_secs(4);
const LEFT_BYTES: usize = 8 << 20;
const LEFT_BYTES_SHORT: usize = 1 << 20;
/// Longest time until the removed worker has ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Kills one worker after the other. The next kill waits until all workers are ready: otherwise slow starts
/// would leave none.
pub(super) async fn kill(fixture: &Fixture<'_>, random: &mut SmallRng) -> Report {
    let (begun, downloads) = (Instant::now(), mixed(fixture, random));
    let schedule = repeated(HIT_EVERY, || Fault::Kill(worker(random.random_range(0..WORKERS))));
    let (results, kills) = fixture.download_under(downloads, schedule, 1).await;
    let seconds = begun.elapsed().as_secs();
    let mut report = Report::of_downloads("kill", &results);
    report.none_fails();
    report.bar_at_most(
        "longest pause of 99 in 100",
        report.figures.pause_p99,
        fixture.play.bound(KILLED_PAUSE),
    );
    let kills = kills.len() as u64;
    let least = (seconds as f64 * fixture.play.share(KILLS_A_SECOND)) as u64;
    report.bar(format!("workers killed in {seconds} s: {kills}, at least {least}"), kills >= least.max(1));
    report
}

/// Freezes and wakes workers; at least one is always awake.
pub(super) async fn freeze(fixture: &Fixture<'_>, random: &mut SmallRng) -> Report {
    let before = fixture.mesh.pids(EXPORT);
    let downloads = mixed(fixture, random);
    // In turn, so that none of them is still frozen from the time before.
    let mut next = random.random_range(0..WORKERS);
    let schedule = repeated(HIT_EVERY, || {
        next = (next + 1) % WORKERS;
        Fault::Freeze(worker(next), Duration::from_millis(random.random_range(FROZEN_MS)))
    });
    let (results, freezes) = fixture.download_under(downloads, schedule, WORKERS as usize - 1).await;
    let count = freezes.len();
    let mut report = Report::of_downloads("freeze", &results);
    report.none_fails();
    report.bar_at_most(
        "longest pause of 99 in 100",
        report.figures.pause_p99,
        fixture.play.bound(FROZEN_PAUSE),
    );
    report.bar(format!("workers frozen meanwhile: {count}, at least 2"), count >= 2);
    report.bar("the frozen workers live on", fixture.mesh.pids(EXPORT) == before);
    report
}

fn worker(replica: u32) -> Target {
    Target { name: EXPORT, replica }
}

fn mixed(fixture: &Fixture<'_>, random: &mut SmallRng) -> Vec<(ExpectedFile, Pace)> {
    let (count, slow) = fixture.play.either((DOWNLOADS, SLOW), (DOWNLOADS_SHORT, SLOW_SHORT));
    fixture.mixed(count, slow, random, Files::any)
}

/// Removes one of three workers, as an autoscaler does, during many downloads.
pub(super) async fn scale(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (count, takes, bytes) =
        fixture.play.either((LEFT, LEFT_TAKES, LEFT_BYTES), (LEFT_SHORT, LEFT_TAKES_SHORT, LEFT_BYTES_SHORT));
    let downloads = (0..count).map(|_| {
        let expected = fixture.files.part(bytes, random);
        let pace = Pace::within(expected.bytes.len(), takes);
        (expected, pace)
    });
    let downloads = fixture.start_downloads(downloads.collect(), count);
    downloads.until_reading(count).await?;
    let to = |replicas| Request::Scale { name: EXPORT.to_owned(), replicas };
    let begun = Instant::now();
    fixture.mesh.order(to(WORKERS - 1)).await?;
    let (took, reading) = (begun.elapsed(), downloads.reading());
    let left = fixture.mesh.pids(EXPORT).len();
    let results = downloads.results().await;
    fixture.mesh.order(to(WORKERS)).await?;
    let mut report = Report::of_downloads("scale", &results);
    report.none_fails();
    report.bar_at_most("the worker is gone", took, fixture.play.bound(GONE_WITHIN));
    report.bar(format!("{left} workers are left of {WORKERS}"), left + 1 == WORKERS as usize);
    report.notes.push(format!(
        "{count} downloads were under way when it was told to leave, {reading} when it was gone"
    ));
    Ok(report)
}
