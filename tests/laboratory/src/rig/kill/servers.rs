//! Phases "nats" and "postgres": a server fails during downloads. Without the database downloads of the
//! history go on; without the bus they may fail, but only visibly.

use std::time::Duration;

use mesh::{failure::Failure, processes::POSTGRES};
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{MissedTickBehavior, interval};

use crate::rig::{
    clients::{
        download_results::{DownloadResult, Outcome},
        files::{ExpectedFile, Files},
        transfer::Pace,
    },
    faults::schedule::{BUS, Fault, ScheduledFault},
    kill::{
        Report,
        fixture::{AT_ONCE, Fixture},
    },
};

/// Number of downloads during the outage.
const DOWNLOADS: usize = 300;
const DOWNLOADS_SHORT: usize = 60;
/// Longest duration of a slow download.
const SLOW: Duration = Duration::from_secs(6);
const SLOW_SHORT: Duration = Duration::from_secs(3);
/// Number of kills of the bus, and the time before each, milliseconds.
const BUS_KILLS: u32 = 3;
const BUS_KILLS_SHORT: u32 = 1;
const BETWEEN_MS: std::ops::Range<u64> = 500..2_000;
/// Interval of listing the segments meanwhile.
const LIST_EVERY: Duration = Duration::from_millis(50);

/// Kills the bus a few times; the supervisor restarts it.
pub(super) async fn nats(fixture: &Fixture<'_>, random: &mut SmallRng) -> Report {
    let before = fixture.mesh.service_pids();
    let downloads = mixed(fixture, random, Files::any);
    let mut at = Duration::ZERO;
    let kills = (0..fixture.play.either(BUS_KILLS, BUS_KILLS_SHORT)).map(|_| {
        at += Duration::from_millis(random.random_range(BETWEEN_MS));
        ScheduledFault { at, fault: Fault::Kill(BUS) }
    });
    let (results, kills) = fixture.download_under(downloads, kills, 1).await;
    let is_normal = fixture.becomes_normal().await;
    let mut report = Report::of_downloads("nats", &results);
    report.none_is_wrong();
    report.bar("service is as usual afterwards", is_normal);
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
    for (killed, back) in kills.iter().map(|kill| kill.span.when) {
        let is_in_progress = |result: &&DownloadResult| result.begun <= killed && killed < result.ended;
        let reading = results.iter().filter(is_in_progress).count();
        let away = (back - killed).as_millis();
        report.notes.push(format!("killed under {reading} downloads, it was ready again after {away} ms"));
    }
    report
}

/// Stops the database during downloads.
pub(super) async fn postgres(fixture: &Fixture<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let before = fixture.mesh.service_pids();
    fixture.mesh.stop_all(POSTGRES).await?;
    let downloads = fixture.start_downloads(mixed(fixture, random, Files::any_of_history), AT_ONCE);
    let (mut listed, mut unlisted) = (0_u32, Vec::new());
    let lists = async {
        let mut ticks = interval(LIST_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match fixture.listed().await {
                Ok(count) if count == fixture.files.plan().segments => listed += 1,
                Ok(count) => unlisted.push(format!("{count} segments are listed")),
                Err(why) => unlisted.push(format!("the segments are not listed: {why}")),
            }
        }
    };
    let results = tokio::select! {
        results = downloads.results() => results,
        () = lists => Vec::new(),
    };
    let ledger = fixture.start_downloads(vec![(fixture.files.ledger(), Pace::QUICK)], 1).results().await;
    fixture.mesh.start_all(POSTGRES).await?;
    fixture.servers.database_is_back().await?;
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
    report.bar("no service was restarted", fixture.mesh.service_pids() == before);
    report.messages.extend(unlisted);
    Ok(report)
}

fn mixed(
    fixture: &Fixture<'_>,
    random: &mut SmallRng,
    any: fn(&Files, &mut SmallRng) -> ExpectedFile,
) -> Vec<(ExpectedFile, Pace)> {
    let (count, slow) = fixture.play.either((DOWNLOADS, SLOW), (DOWNLOADS_SHORT, SLOW_SHORT));
    fixture.mixed(count, slow, random, any)
}
