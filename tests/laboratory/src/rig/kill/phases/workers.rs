//! Phases "kill", "freeze" and "scale": workers are killed, frozen and removed during downloads. No client
//! may see more than a short wait.

use std::{convert::Infallible, time::Duration};

use mesh::failure::Failure;
use mesh_launcher::control::Request;
use rand::{Rng as _, rngs::SmallRng};
use rustix::process::Signal;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::rig::{
    clients::{
        download_batch::Pace,
        files::{ExpectedFile, Files},
    },
    faults::send,
    kill::{
        Report,
        fixture::{AT_ONCE, EXPORT, Fixture, WORKERS},
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
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of downloads in progress when a worker is removed, and duration and size of each.
const LEFT: usize = 200;
const LEFT_SHORT: usize = 40;
const LEFT_TAKES: Duration = Duration::from_secs(10);
const LEFT_TAKES_SHORT: Duration = Duration::from_secs(4);
const LEFT_BYTES: usize = 8 << 20;
const LEFT_BYTES_SHORT: usize = 1 << 20;
/// Longest time until the removed worker has ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Kills one worker after the other.
pub(super) async fn kill(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let mut kills = 0_u32;
    let downloads = mixed(fixture, random);
    let begun = Instant::now();
    let batch = fixture.start_downloads(downloads, AT_ONCE);
    let hits = async {
        let mut hits = interval(HIT_EVERY);
        hits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        hits.tick().await;
        loop {
            hits.tick().await;
            // Waits until all workers are ready, otherwise slow starts would leave none.
            while fixture.serving() < WORKERS as usize {
                sleep(POLL_INTERVAL).await;
            }
            let hit = fixture.mesh.random_replica(EXPORT, random).and_then(|pid| send(pid, Signal::KILL));
            kills += u32::from(hit.is_ok());
        }
    };
    let results = tokio::select! {
        results = batch.results() => results,
        () = hits => Vec::new(),
    };
    let seconds = begun.elapsed().as_secs();
    let mut report = Report::of_downloads("kill", &results);
    report.none_fails();
    report.bar_at_most("longest pause of 99 in 100", report.figures.pause_p99, fixture.bound(KILLED_PAUSE));
    let least = (seconds as f64 * fixture.share(KILLS_A_SECOND)) as u32;
    report.bar(format!("workers killed in {seconds} s: {kills}, at least {least}"), kills >= least.max(1));
    Ok(report)
}

/// Freezes and wakes workers; at least one is always awake.
pub(super) async fn freeze(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = fixture.mesh.pids(EXPORT);
    let downloads = mixed(fixture, random);
    let batch = fixture.start_downloads(downloads, AT_ONCE);
    let mut frozen = Frozen { pids: Vec::new(), count: 0 };
    let results = tokio::select! {
        results = batch.results() => results,
        failure = frozen.freeze_workers(fixture, random) => return Err(failure.err().unwrap_or_else(|| Failure::failed("nobody was frozen"))),
    };
    let count = frozen.count;
    drop(frozen);
    let mut report = Report::of_downloads("freeze", &results);
    report.none_fails();
    report.bar_at_most("longest pause of 99 in 100", report.figures.pause_p99, fixture.bound(FROZEN_PAUSE));
    report.bar(format!("workers frozen meanwhile: {count}, at least 2"), count >= 2);
    report.bar("the frozen workers live on", fixture.mesh.pids(EXPORT) == before);
    Ok(report)
}

/// The frozen workers; all are woken when this is dropped.
struct Frozen {
    pids: Vec<(u32, Instant)>,
    count: u32,
}

impl Frozen {
    async fn freeze_workers(
        &mut self,
        fixture: &Fixture<'_>,
        random: &mut SmallRng,
    ) -> Result<Infallible, Failure> {
        let mut next = Instant::now() + HIT_EVERY / 2;
        loop {
            sleep(POLL_INTERVAL).await;
            let now = Instant::now();
            for (pid, _) in self.pids.extract_if(.., |(_, until)| *until <= now) {
                send(pid, Signal::CONT)?;
            }
            if now < next || self.pids.len() + 1 >= WORKERS as usize {
                continue;
            }
            next = now + HIT_EVERY;
            let pid = fixture.mesh.random_replica(EXPORT, random)?;
            if self.pids.iter().all(|(frozen, _)| *frozen != pid) {
                let time = Duration::from_millis(random.random_range(FROZEN_MS));
                self.pids.push((pid, now + time));
                self.count += 1;
                send(pid, Signal::STOP)?;
            }
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for (pid, _) in &self.pids {
            // Fails when the worker has ended meanwhile.
            let _ = send(*pid, Signal::CONT);
        }
    }
}

fn mixed(fixture: &Fixture<'_>, random: &mut SmallRng) -> Vec<(ExpectedFile, Pace)> {
    let (count, slow) = fixture.either((DOWNLOADS, SLOW), (DOWNLOADS_SHORT, SLOW_SHORT));
    fixture.mixed(count, slow, random, Files::any)
}

/// Removes one of three workers, as an autoscaler does, during many downloads.
pub(super) async fn scale(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let (count, takes, bytes) =
        fixture.either((LEFT, LEFT_TAKES, LEFT_BYTES), (LEFT_SHORT, LEFT_TAKES_SHORT, LEFT_BYTES_SHORT));
    let downloads = (0..count).map(|_| {
        let expected = fixture.files.part(bytes, random);
        let pace = Pace::within(expected.bytes.len(), takes);
        (expected, pace)
    });
    let batch = fixture.start_downloads(downloads.collect(), count);
    batch.is_reading(count).await?;
    let to = |replicas| Request::Scale { name: EXPORT.to_owned(), replicas };
    let begun = Instant::now();
    fixture.mesh.order(to(WORKERS - 1)).await?;
    let (took, reading) = (begun.elapsed(), batch.reading());
    let left = fixture.mesh.pids(EXPORT).len();
    let results = batch.results().await;
    fixture.mesh.order(to(WORKERS)).await?;
    let mut report = Report::of_downloads("scale", &results);
    report.none_fails();
    report.bar_at_most("the worker is gone", took, fixture.bound(GONE_WITHIN));
    report.bar(format!("{left} workers are left of {WORKERS}"), left + 1 == WORKERS as usize);
    report.notes.push(format!(
        "{count} downloads were under way when it was told to leave, {reading} when it was gone"
    ));
    Ok(report)
}
