//! What the phases share: their world, which has three export workers and one edge, and downloads under
//! faults.

use std::time::Duration;

use futures_util::FutureExt as _;
use mesh_launcher::services::runnable;
use mesh_testbed::poll;
use rand::rngs::SmallRng;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    metrics,
    private::UNCACHED_EDGE,
    rig::{
        clients::{
            download::Download,
            download_results::DownloadResult,
            downloaders::Downloaders,
            files::{ExpectedFile, Files, SEGMENTS},
            transfer::Pace,
        },
        engine::RESTARTED_SOON,
        faults::{
            injector::{FaultInjector, InjectedFault},
            schedule::ScheduledFault,
        },
        world::Setup,
    },
    synthetic::Synthetic,
};

pub(super) use crate::rig::world::World;

/// The service under test.
pub(super) const EXPORT: &str = "export";
/// The service in front of it.
pub(super) const EDGE: &str = "edge";
/// Number of workers.
pub(super) const WORKERS: u32 = 3;
/// Number of concurrent downloads.
pub(super) const AT_ONCE: usize = 64;
/// Time limit of a download, for a loaded machine.
pub(super) const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// The synthetic history of the long form and of the short one.
const PLAN: Synthetic = Synthetic { segments: 64, blocks: 1000, rows: 4000 };
const PLAN_SHORT: Synthetic = Synthetic { segments: 16, rows: 200, ..PLAN };
/// Number of ledger entries, and the block that they are in.
const ENTRIES: u32 = 20_000;
const ENTRIES_SHORT: u32 = 1_000;
const BLOCK: &str = "INSERT INTO blocks VALUES ('2024-01-01 00:00:00+00', 1, 'ab')";

/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of one request in that check.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The world of the drill.
pub(super) fn setup(is_short: bool) -> Setup {
    // Other services would only take processor time.
    let others = runnable(false).map(|service| service.name).filter(|name| ![EDGE, EXPORT].contains(name));
    let mut replicas: Vec<(&str, u32)> = others.map(|name| (name, 0)).collect();
    replicas.extend([(EXPORT, WORKERS), (UNCACHED_EDGE, 0)]);
    let files = if is_short { (PLAN_SHORT, ENTRIES_SHORT) } else { (PLAN, ENTRIES) };
    Setup { restart_rule: RESTARTED_SOON, fill: &[BLOCK], files: Some(files), replicas, ..Setup::default() }
}

impl World<'_> {
    /// Starts downloads, at most `at_once` concurrently.
    pub(super) fn start_downloads(
        &self,
        downloads: Vec<(ExpectedFile, Pace)>,
        at_once: usize,
    ) -> Downloaders {
        let time_limit = DOWNLOAD_TIMEOUT.max(self.play.bound(DOWNLOAD_TIMEOUT / 2));
        Downloaders::start_list(self.edges.cached, downloads, at_once, Duration::ZERO, time_limit)
    }

    /// Downloads files, [`AT_ONCE`] concurrently, while faults are injected, at most `at_once` concurrently.
    /// Returns the results, and the repaired faults.
    pub(super) async fn download_under(
        &self,
        downloads: Vec<(ExpectedFile, Pace)>,
        schedule: impl Iterator<Item = ScheduledFault>,
        at_once: usize,
    ) -> (Vec<DownloadResult>, Vec<InjectedFault>) {
        let injector = FaultInjector::new(self.mesh);
        let results = self.start_downloads(downloads, AT_ONCE).results().boxed_local().shared();
        injector.run_until(schedule, at_once, results.clone().map(drop)).await;
        let mut faults = injector.injected();
        faults.retain(|fault| fault.is_repaired);
        (results.await, faults)
    }

    /// `count` random downloads of all kinds and paces; slow ones take up to `longest`.
    pub(super) fn mixed(
        &self,
        count: usize,
        longest: Duration,
        random: &mut SmallRng,
        any: impl Fn(&Files, &mut SmallRng) -> ExpectedFile,
    ) -> Vec<(ExpectedFile, Pace)> {
        let download = |_| {
            let expected = any(&self.files, random);
            let pace = Pace::any(expected.bytes.len(), longest, random);
            (expected, pace)
        };
        (0..count).map(download).collect()
    }

    /// Waits until all workers are ready, list every segment, and serve the whole history; returns whether
    /// they do.
    pub(super) async fn downloads_are_normal(&self) -> bool {
        poll(TIMEOUT, async || if self.is_normal().await { Ok(()) } else { Err(()) }).await.is_ok()
    }

    async fn is_normal(&self) -> bool {
        let is_ready =
            |name: &str, replicas| self.mesh.serves(name) && self.mesh.pids(name).len() == replicas;
        let segments = self.files.plan().segments;
        if !is_ready(EXPORT, WORKERS as usize) || !is_ready(EDGE, 1) || self.listed().await != Ok(segments) {
            return false;
        }
        let whole = self.files.largest();
        // Several requests, so that every worker is likely to answer one.
        for _ in 0..2 * WORKERS {
            let opening = Download::open(self.edges.cached, &whole.path, Some("0-0"), None);
            let Ok(Ok(opened)) = timeout(ANSWER_WITHIN, opening).await else { return false };
            if opened.head.status != 206 || opened.head.header("etag") != whole.etag.as_deref() {
                return false;
            }
        }
        true
    }

    /// Number of pulls that the edge has sent.
    pub(super) async fn pulls(&self) -> Option<u64> {
        let rows = self.mesh.supervisor.rows();
        let metrics = metrics::fetch(rows.iter().find(|row| row.service == EDGE)?).await?;
        Some(metrics::sum(&metrics, "mesh_stream_pulls_total") as u64)
    }

    /// Number of segments listed, or the failure text.
    pub(super) async fn listed(&self) -> Result<u64, String> {
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
