//! Phases "nats" and "postgres": a server fails during downloads. Without the database downloads of the
//! history go on; without the bus they may fail, but only visibly.

use std::{sync::atomic::AtomicUsize, time::Duration};

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
};
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{Instant, sleep};

use crate::rig::{
    clients::{
        download_batch::{DownloadBatch, Pace, download_file},
        download_results::Outcome,
        files::{ExpectedFile, Files, LEDGER},
    },
    kill::{
        Report,
        fixture::{AT_ONCE, DOWNLOAD_TIMEOUT, Fixture},
    },
};

/// Number of downloads during the outage.
const DOWNLOADS: usize = 300;
const DOWNLOADS_SHORT: usize = 60;
/// Longest duration of a slow download.
const SLOW: Duration = Duration::from_secs(6);
const SLOW_SHORT: Duration = Duration::from_secs(3);
/// Number of kills of the bus, and the pause before each, milliseconds.
const BUS_KILLS: u32 = 3;
const BUS_KILLS_SHORT: u32 = 1;
const BETWEEN_MS: std::ops::Range<u64> = 500..2_000;
/// Interval of listing the segments meanwhile.
const LIST_EVERY: Duration = Duration::from_millis(50);

/// Kills the bus a few times; the supervisor restarts it.
pub(super) async fn nats(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = fixture.mesh.service_pids();
    let batch = begin(fixture, random, Files::any);
    let mut notes = Vec::new();
    for _ in 0..fixture.play.either(BUS_KILLS, BUS_KILLS_SHORT) {
        sleep(Duration::from_millis(random.random_range(BETWEEN_MS))).await;
        let reading = batch.reading();
        let killed = Instant::now();
        fixture.mesh.kill_one(NATS, random).await?;
        fixture.servers.bus_is_back().await?;
        let away = killed.elapsed().as_millis();
        notes.push(format!("killed under {reading} downloads, it took connections again after {away} ms"));
    }
    let results = batch.results().await;
    let is_normal = fixture.becomes_normal().await;
    let mut report = Report::of_downloads("nats", &results);
    report.none_is_wrong();
    report.bar("service is as usual afterwards", is_normal);
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
    report.notes = notes;
    Ok(report)
}

/// Stops the database during downloads.
pub(super) async fn postgres(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = fixture.mesh.service_pids();
    fixture.mesh.stop_all(POSTGRES).await?;
    let batch = begin(fixture, random, Files::any_of_history);
    let (mut listed, mut unlisted) = (0_u32, Vec::new());
    let lists = async {
        loop {
            match fixture.listed().await {
                Ok(count) if count == fixture.files.plan().segments => listed += 1,
                Ok(count) => unlisted.push(format!("{count} segments are listed")),
                Err(why) => unlisted.push(format!("the segments are not listed: {why}")),
            }
            sleep(LIST_EVERY).await;
        }
    };
    let results = tokio::select! {
        results = batch.results() => results,
        () = lists => Vec::new(),
    };
    let expected =
        ExpectedFile { path: LEDGER.to_owned(), range: None, bytes: Default::default(), etag: None };
    let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
    let ledger = download_file(
        fixture.edge,
        &expected,
        Pace::QUICK,
        deadline,
        &AtomicUsize::new(0),
        std::future::ready(()),
    )
    .await;
    fixture.mesh.start_all(POSTGRES).await?;
    fixture.servers.database_is_back().await?;
    let mut report = Report::of_downloads("postgres", &results);
    report.none_fails();
    report.bar(
        format!(
            "listings that failed: {} of {}, at most 0",
            unlisted.len(),
            listed as usize + unlisted.len()
        ),
        unlisted.is_empty() && listed > 0,
    );
    report.bar(
        "a ledger, which needs the database, is refused or breaks",
        matches!(ledger.outcome, Outcome::Refused(_) | Outcome::Broken(_)),
    );
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
    report.messages.extend(unlisted);
    Ok(report)
}

fn begin(
    fixture: &Fixture<'_>,
    random: &mut SmallRng,
    any: fn(&Files, &mut SmallRng) -> ExpectedFile,
) -> DownloadBatch {
    let (count, slow) = fixture.play.either((DOWNLOADS, SLOW), (DOWNLOADS_SHORT, SLOW_SHORT));
    let downloads = fixture.mixed(count, slow, random, any);
    fixture.start_downloads(downloads, AT_ONCE)
}
