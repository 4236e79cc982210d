//! Phases "kill", "freeze", "scale", "nats" and "postgres": workers are killed, frozen and removed, and servers
//! fail, during downloads. No client may see more than a short wait when a worker fails. Without the database
//! downloads of the history continue; without the bus they may fail, but never end as if complete.

use std::{ops::Range, time::Duration};

use mesh::{failure::Failure, processes::POSTGRES};
use mesh_launcher::control::Request;
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::rig::{
    clients::{
        download_results::{DownloadResult, Outcome},
        files::{ExpectedFile, Files},
        transfer::Pace,
    },
    faults::schedule::{BUS, Fault, ScheduledFault, Target, repeated},
    kill::{
        Report,
        fixture::{AT_ONCE, EXPORT, WORKERS, World},
    },
};

/// Number of downloads while workers are killed or frozen.
const DOWNLOADS: usize = 1000;
const DOWNLOADS_SHORT: usize = 100;
/// Number of downloads while a server fails.
const SERVER_DOWNLOADS: usize = 300;
const SERVER_DOWNLOADS_SHORT: usize = 60;
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
const FROZEN_MS: Range<u64> = 1_500..2_500;

/// Number of downloads in progress when a worker is removed, and duration and size of each.
const LEFT: usize = 200;
const LEFT_SHORT: usize = 40;
const LEFT_TAKES: Duration = Duration::from_secs(10);
const LEFT_TAKES_SHORT: Duration = Duration::from_secs(4);
const LEFT_BYTES: usize = 8 << 20;
const LEFT_BYTES_SHORT: usize = 1 << 20;
/// Longest time until the removed worker has ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Number of kills of the bus, and the time before each, milliseconds.
const BUS_KILLS: u32 = 3;
const BUS_KILLS_SHORT: u32 = 1;
const BETWEEN_MS: Range<u64> = 500..2_000;
/// Interval of listing the segments meanwhile.
const LIST_EVERY: Duration = Duration::from_millis(50);

/// Kills one worker after the other. The next kill waits until all workers are ready: otherwise slow starts
/// would leave none.
pub(super) async fn kill(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (begun, downloads) = (Instant::now(), mixed(world, random, (DOWNLOADS, DOWNLOADS_SHORT), Files::any));
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
pub(super) async fn freeze(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.pids(EXPORT);
    let downloads = mixed(world, random, (DOWNLOADS, DOWNLOADS_SHORT), Files::any);
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
fn without_failures(phase: &str, results: &[DownloadResult], longest_pause: Duration) -> Report {
    let mut report = Report::of_downloads(phase, results);
    report.none_fails();
    report.bar_at_most("longest pause of 99 in 100", report.figures.pause_p99, longest_pause);
    report
}

fn worker(replica: u32) -> Target {
    Target { name: EXPORT, replica }
}

/// Removes one of three workers, as an autoscaler does, during many downloads.
pub(super) async fn scale(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (count, takes, bytes) =
        world.play.either((LEFT, LEFT_TAKES, LEFT_BYTES), (LEFT_SHORT, LEFT_TAKES_SHORT, LEFT_BYTES_SHORT));
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
    report.none_fails();
    report.bar_at_most("the worker is gone", took, world.play.bound(GONE_WITHIN));
    report.bar(format!("{left} workers are left of {WORKERS}"), left + 1 == WORKERS as usize);
    report.notes.push(format!(
        "{count} downloads were in progress when its stop was requested, {reading} when it had ended"
    ));
    Ok(report)
}

/// Kills the bus a few times; the supervisor restarts it.
pub(super) async fn nats(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.service_pids();
    let downloads = mixed(world, random, (SERVER_DOWNLOADS, SERVER_DOWNLOADS_SHORT), Files::any);
    let mut at = Duration::ZERO;
    let kills = (0..world.play.either(BUS_KILLS, BUS_KILLS_SHORT)).map(|_| {
        at += Duration::from_millis(random.random_range(BETWEEN_MS));
        ScheduledFault { at, fault: Fault::Kill(BUS) }
    });
    let (results, kills) = world.download_under(downloads, kills, 1).await;
    let is_normal = world.downloads_are_normal().await;
    let mut report = Report::of_downloads("nats", &results);
    report.none_is_wrong();
    report.bar("service is as usual afterwards", is_normal);
    report.bar("no service was restarted", world.mesh.service_pids() == before);
    for (killed, back) in kills.iter().map(|kill| kill.span.when) {
        let is_in_progress = |result: &&DownloadResult| result.begun <= killed && killed < result.ended;
        let reading = results.iter().filter(is_in_progress).count();
        let away = (back - killed).as_millis();
        report.notes.push(format!("killed under {reading} downloads, it was ready again after {away} ms"));
    }
    Ok(report)
}

/// Stops the database during downloads.
pub(super) async fn postgres(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = world.mesh.service_pids();
    world.mesh.stop_all(POSTGRES).await?;
    let counts = (SERVER_DOWNLOADS, SERVER_DOWNLOADS_SHORT);
    let downloads = mixed(world, random, counts, Files::any_of_history);
    let downloads = world.start_downloads(downloads, AT_ONCE);
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
    report.none_fails();
    let listings = listed as usize + unlisted.len();
    report.bar(
        format!("listings that failed: {} of {listings}, at most 0", unlisted.len()),
        unlisted.is_empty() && listed > 0,
    );
    report.bar(
        "a ledger, which needs the database, is refused or breaks",
        ledger.iter().all(|result| matches!(result.outcome, Outcome::Refused(_) | Outcome::Broken(_))),
    );
    report.bar("no service was restarted", world.mesh.service_pids() == before);
    report.messages.extend(unlisted);
    Ok(report)
}

/// Random downloads for the long form or for the short one.
fn mixed(
    world: &World<'_>,
    random: &mut SmallRng,
    (long, short): (usize, usize),
    any: fn(&Files, &mut SmallRng) -> ExpectedFile,
) -> Vec<(ExpectedFile, Pace)> {
    let (count, slow) = world.play.either((long, SLOW), (short, SLOW_SHORT));
    world.mixed(count, slow, random, any)
}
