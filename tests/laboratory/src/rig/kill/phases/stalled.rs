//! Thousands of clients take almost nothing: they cost the edge little, and a quick one hardly notices.

use std::{sync::atomic::AtomicUsize, time::Duration};

use mesh::failure::Failure;
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::time::{Instant, sleep};

use crate::rig::{
    clients::{
        crowd::{Crowd, Pace, one},
        memory::{Resident, tcp_kib, while_watched},
        seen::{Outcome, Seen},
    },
    kill::{
        Report,
        stage::{DOWNLOAD_PATIENCE, EDGE, Stage},
    },
};

/// Clients that take 1 KB a second.
const CLIENTS: usize = 2000;
const CLIENTS_SHORT: usize = 200;
/// They come one after the other: workers turn a burst of openings away, and its clients would have to come
/// again.
const APART: Duration = Duration::from_millis(3);
const STALLED: Pace =
    Pace { most: 1000, away: Duration::from_secs(1), rest: Duration::ZERO, receive_buffer: None };
/// They have settled when so few pulls are sent for all of them in a second: what they took at first is in
/// the buffers on the way, and they take hardly more from there.
const SETTLED: usize = 10;
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// How long a quick client downloads again and again.
const QUICK: Duration = Duration::from_secs(4);
const QUICK_SHORT: Duration = Duration::from_secs(1);
/// What the edge may have in memory, KiB.
const EDGE_KIB: u64 = 400 << 10;
/// What a quick client keeps of the speed that it has alone.
const KEPT: f64 = 0.8;

/// A quick client alone, then beside many stalled ones, then alone again.
pub(super) async fn stalled(stage: &Stage<'_>) -> Result<Report, Failure> {
    let count = stage.either(CLIENTS, CLIENTS_SHORT);
    let mut edge: Vec<Resident> =
        stage.mesh.pids(EDGE).into_iter().filter_map(|pid| Resident::of(EDGE.to_owned(), pid)).collect();
    let tcp_before = tcp_kib();
    let before = quick(stage).await;
    let (beside, stalled, tcp) = while_watched(&mut edge, async {
        let mut random = SmallRng::seed_from_u64(0);
        let half = stage.files.largest().bytes.len() / 2;
        let downloads = (0..count).map(|_| (stage.files.part(half, &mut random), STALLED)).collect();
        // They never come to their end, and are not late before the phase is.
        let crowd = Crowd::start(stage.edge, downloads, count, APART, DOWNLOAD_PATIENCE * 5);
        crowd.is_reading(count).await?;
        settled(stage, count).await;
        let tcp = tcp_kib();
        let beside = quick(stage).await;
        Ok::<_, Failure>((beside, crowd.reading(), tcp))
    })
    .await?;
    let after = quick(stage).await;
    let (lone, kept) = (before.speed().max(after.speed()), beside.speed());
    let seen: Vec<Seen> = [before, beside, after].into_iter().flat_map(|quick| quick.seen).collect();
    let mut report = Report::of_downloads("stalled", &seen);
    report.none_fails();
    report.bar(format!("stalled clients that are still served: {stalled} of {count}"), stalled == count);
    let least = stage.share(KEPT);
    report.bar(
        format!(
            "a quick client keeps {:.2} of {lone:.0} MB a second, at least {least:.2}",
            kept / lone.max(f64::MIN_POSITIVE)
        ),
        kept >= lone * least,
    );
    for edge in &edge {
        let (most, bound) = (edge.at_most >> 10, EDGE_KIB >> 10);
        report.bar(format!("memory of the edge: {most} MiB, at most {bound} MiB"), edge.at_most < EDGE_KIB);
        let each = edge.grown() / count as u64;
        report.notes.push(format!("of which {each} KiB for each of {count} clients"));
    }
    if let (Some(before), Some(stalled)) = (tcp_before, tcp) {
        let mib = stalled.saturating_sub(before) >> 10;
        report.notes.push(format!("the system holds {mib} MiB more for TCP, both ends of every connection"));
    }
    Ok(report)
}

/// Waits until stalled clients take hardly more.
async fn settled(stage: &Stage<'_>, clients: usize) {
    let deadline = Instant::now() + SETTLED_WITHIN;
    let mut before = None;
    while Instant::now() < deadline {
        let now = stage.pulls().await.map(|(pulls, _)| pulls);
        if let (Some(before), Some(now)) = (before, now)
            && now - before <= (clients / SETTLED) as u64
        {
            return;
        }
        before = now;
        sleep(Duration::from_secs(1)).await;
    }
}

/// What a quick client got.
struct Quick {
    seen: Vec<Seen>,
    took: Duration,
}

impl Quick {
    /// In MB a second.
    fn speed(&self) -> f64 {
        let whole = self.seen.iter().filter(|seen| seen.outcome == Outcome::Whole);
        let bytes: u64 = whole.map(|seen| seen.bytes).sum();
        bytes as f64 / 1e6 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Downloads the whole history again and again for a while.
async fn quick(stage: &Stage<'_>) -> Quick {
    let (begun, reading) = (Instant::now(), AtomicUsize::new(0));
    let wanted = stage.files.largest();
    let mut seen = Vec::new();
    while begun.elapsed() < stage.either(QUICK, QUICK_SHORT) {
        let deadline = Instant::now() + DOWNLOAD_PATIENCE;
        seen.push(one(stage.edge, &wanted, Pace::QUICK, deadline, &reading, std::future::ready(())).await);
    }
    Quick { seen, took: begun.elapsed() }
}
