//! Phase "stalled": thousands of clients read almost nothing. They must cost the edge little memory, and a
//! quick client little speed.

use std::{sync::Arc, time::Duration};

use mesh::failure::Failure;
use rand::rngs::SmallRng;
use tokio::time::{Instant, interval, timeout};

use crate::rig::{
    clients::{
        download::{Pace, download_file},
        download_results::{DownloadResult, Outcome},
        downloaders::{Choose, Downloaders},
        memory::{ProcessMemory, while_watched},
    },
    kill::{DOWNLOAD_TIMEOUT, EDGE, World},
    report::Report,
};

/// Number of clients that read 1 KB a second.
const CLIENTS: [usize; 2] = [2000, 200];
/// Time between two of their connections: workers refuse a burst of openings, and the clients would have to
/// retry.
const CONNECT_INTERVAL: Duration = Duration::from_millis(3);
const STALLED: Pace = Pace { most: 1000, pause: Duration::from_secs(1), ..Pace::QUICK };
/// The buffers on the way to them count as full when the pulls in a second are at most this fraction of the
/// number of clients.
const SETTLED: usize = 10;
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// How long the quick client downloads repeatedly.
const QUICK: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(1)];
/// Greatest memory of the edge, KiB.
const EDGE_KIB: u64 = 400 << 10;
/// Least speed of the quick client, as a share of its speed alone.
const LEAST_SHARE: f64 = 0.8;

/// Measures a quick client alone, then together with the stalled ones, then alone again.
pub(super) async fn stalled(world: &World<'_>) -> Result<Report, Failure> {
    let count = world.play.either(CLIENTS);
    let mut edge = ProcessMemory::of_all(world.mesh, &[EDGE]);
    let before = quick(world).await;
    let (beside, stalled) = while_watched(&mut edge, async {
        let (half, files) = (world.files.largest().bytes.len() / 2, Arc::clone(&world.files));
        let part: Arc<Choose> = Arc::new(move |random: &mut SmallRng| (files.part(half, random), STALLED));
        let clients = Downloaders::start(world.edges.cached, &[(count, part)], CONNECT_INTERVAL, world.seed);
        clients.until_reading(count).await?;
        settled(world, count).await;
        let beside = quick(world).await;
        // A client that had to resume is not counted.
        let (attempts, _) = clients.counts();
        Ok::<_, Failure>((beside, clients.reading().saturating_sub(attempts as usize - count)))
    })
    .await?;
    let after = quick(world).await;
    let (lone, kept) = (before.speed().max(after.speed()), beside.speed());
    let results: Vec<DownloadResult> =
        [before, beside, after].into_iter().flat_map(|quick| quick.results).collect();
    let mut report = Report::of_downloads("stalled", &results);
    report.none_fails(&results);
    report.bar(format!("stalled clients that are still served: {stalled} of {count}"), stalled == count);
    let least = world.play.share(LEAST_SHARE);
    let share = kept / lone.max(f64::MIN_POSITIVE);
    report.bar(
        format!("a quick client keeps {share:.2} of {lone:.0} MB a second, at least {least:.2}"),
        kept >= lone * least,
    );
    for edge in &edge {
        let (most, bound) = (edge.at_most >> 10, EDGE_KIB >> 10);
        report.bar(format!("memory of the edge: {most} MiB, at most {bound} MiB"), edge.at_most < EDGE_KIB);
        let each = edge.grown() / count as u64;
        report.notes.push(format!("of which {each} KiB for each of {count} clients"));
    }
    Ok(report)
}

/// Waits until the stalled clients cause few pulls.
async fn settled(world: &World<'_>, clients: usize) {
    let settled = async {
        let (mut ticks, mut before) = (interval(Duration::from_secs(1)), None);
        loop {
            ticks.tick().await;
            let now = world.mesh.metric(EDGE, "mesh_stream_pulls_total").await;
            if let (Some(before), Some(now)) = (before, now)
                && now - before <= (clients / SETTLED) as f64
            {
                return;
            }
            before = now;
        }
    };
    // Clients that never settle show in the bars.
    let _ = timeout(SETTLED_WITHIN, settled).await;
}

/// The downloads of the quick client.
struct Quick {
    results: Vec<DownloadResult>,
    took: Duration,
}

impl Quick {
    /// Speed of complete downloads, MB/s.
    fn speed(&self) -> f64 {
        let whole = self.results.iter().filter(|result| result.outcome == Outcome::Whole);
        let bytes: u64 = whole.map(|result| result.bytes).sum();
        bytes as f64 / 1e6 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Downloads the whole history repeatedly for a fixed time.
async fn quick(world: &World<'_>) -> Quick {
    let (begun, expected, mut results) = (Instant::now(), world.files.largest(), Vec::new());
    while begun.elapsed() < world.play.either(QUICK) {
        let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
        results.push(download_file(world.edges.cached, &expected, Pace::QUICK, deadline, || ()).await);
    }
    Quick { results, took: begun.elapsed() }
}
