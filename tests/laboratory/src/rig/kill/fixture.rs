//! Environment of the drill: a private mesh with three export workers and one edge, a synthetic sealed
//! history, and a ledger in the database.

use std::{net::SocketAddr, time::Duration};

use futures_util::FutureExt as _;
use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_launcher::services::runnable;
use rand::{SeedableRng as _, rngs::SmallRng};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    metrics,
    private::{Layout, PrivateMesh, Servers, UNCACHED_EDGE},
    rig::{
        args::PlayArgs,
        clients::{
            download::Download,
            download_batch::{DownloadBatch, Pace},
            download_results::DownloadResult,
            files::{ExpectedFile, Files, LEDGER_ROWS, SEGMENTS},
        },
        faults::{
            injector::{FaultInjector, InjectedFault},
            schedule::ScheduledFault,
        },
    },
    synthetic::{LargeTable, Synthetic},
};

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
const PLAN: Synthetic = Synthetic { table: LargeTable::Trades, segments: 64, blocks: 1000, rows: 4000 };
const PLAN_SHORT: Synthetic = Synthetic { segments: 16, rows: 200, ..PLAN };
/// Number of ledger entries, and the block that they are in.
const ENTRIES: u32 = 20_000;
const ENTRIES_SHORT: u32 = 1_000;
const BLOCK: &str = "INSERT INTO blocks VALUES ('2024-01-01 00:00:00+00', 1, 'ab')";

/// How long the service may take to become normal between two phases.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of one request in that check.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The running mesh and the expected files.
pub(super) struct Fixture<'a> {
    pub(super) mesh: &'a PrivateMesh,
    pub(super) play: &'a PlayArgs,
    pub(super) servers: Servers,
    pub(super) edge: SocketAddr,
    pub(super) files: Files,
}

impl<'a> Fixture<'a> {
    /// Writes the data and starts servers and services.
    pub(super) async fn start(mesh: &'a PrivateMesh, play: &'a PlayArgs, seed: u64) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        print_line("writing segments");
        let (plan, rows) = play.either((PLAN, ENTRIES), (PLAN_SHORT, ENTRIES_SHORT));
        let folder = mesh.home.root().to_owned();
        let root = folder.clone();
        let written = tokio::task::spawn_blocking(move || plan.write(&root)).await;
        written.map_err(|error| cannot("write segments", &error))??;
        let database = servers.connect("").await?;
        for statement in [BLOCK, &LEDGER_ROWS.replace("ROWS", &rows.to_string()), "VACUUM ANALYZE"] {
            database.batch_execute(statement).await.map_err(|error| cannot("fill in rows", &error))?;
        }
        // Other services would only take processor time.
        let others = runnable(false).map(|service| service.name).filter(|name| *name != EDGE);
        let mut replicas: Vec<(&str, u32)> = others.map(|name| (name, 0)).collect();
        replicas.retain(|(name, _)| *name != EXPORT);
        replicas.extend([(EXPORT, WORKERS), (UNCACHED_EDGE, 0)]);
        let edges =
            mesh.start_services(&servers, &Layout { replicas: &replicas, ..Layout::default() }).await?;
        let mut files = Files::read(&folder, plan, &mut SmallRng::seed_from_u64(seed)).await?;
        files.learn_ledger(edges.cached).await?;
        Ok(Self { mesh, play, servers, edge: edges.cached, files })
    }

    /// Starts downloads, at most `at_once` concurrently.
    pub(super) fn start_downloads(
        &self,
        downloads: Vec<(ExpectedFile, Pace)>,
        at_once: usize,
    ) -> DownloadBatch {
        let time_limit = DOWNLOAD_TIMEOUT.max(self.play.bound(DOWNLOAD_TIMEOUT / 2));
        DownloadBatch::start(self.edge, downloads, at_once, Duration::ZERO, time_limit)
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
        let mut mixed = Vec::with_capacity(count);
        for _ in 0..count {
            let expected = any(&self.files, random);
            let pace = Pace::any(expected.bytes.len(), longest, random);
            mixed.push((expected, pace));
        }
        mixed
    }

    /// Waits until all workers are ready, list every segment, and serve the whole history; returns whether
    /// they do.
    pub(super) async fn becomes_normal(&self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if self.is_normal().await {
                return true;
            }
            sleep(POLL_INTERVAL).await;
        }
        false
    }

    async fn is_normal(&self) -> bool {
        let readiness = self.mesh.supervisor.standing();
        let expected = |name: &str| if name == EXPORT { WORKERS as usize } else { 1 };
        let is_ready = |name: &str| {
            readiness
                .iter()
                .any(|(other, ready, all)| other == name && ready == all && *all == expected(name))
        };
        if !is_ready(EXPORT) || !is_ready(EDGE) || self.listed().await != Ok(self.files.plan().segments) {
            return false;
        }
        let whole = self.files.largest();
        // Several requests, so that every worker is likely to answer one.
        for _ in 0..2 * WORKERS {
            let opened =
                timeout(ANSWER_WITHIN, Download::open(self.edge, &whole.path, Some("0-0"), None)).await;
            let Ok(Ok(opened)) = opened else { return false };
            if opened.head.status != 206 || opened.head.etag != whole.etag {
                return false;
            }
        }
        true
    }

    /// Numbers of pulls that the edge has sent, and of repeated ones among them.
    pub(super) async fn pulls(&self) -> Option<(u64, u64)> {
        let rows = self.mesh.supervisor.rows();
        let metrics = metrics::fetch(rows.iter().find(|row| row.service == EDGE)?).await?;
        let count = |name: &str| metrics::sum(&metrics, name) as u64;
        Some((count("mesh_stream_pulls_total"), count("mesh_stream_pulls_again_total")))
    }

    /// Number of segments listed, or the failure text.
    pub(super) async fn listed(&self) -> Result<u64, String> {
        let listed = timeout(ANSWER_WITHIN, async {
            let mut download = Download::open(self.edge, SEGMENTS, None, None).await?;
            let text = download.text().await?;
            let listing: Option<Value> = serde_json::from_str(&text).ok();
            let segments = listing.as_ref().and_then(|listing| listing["segments"].as_array());
            match (download.head.status, segments) {
                (200, Some(segments)) => Ok(segments.len() as u64),
                (status, _) => Err(format!("{status} {text}")),
            }
        });
        listed.await.unwrap_or_else(|_| Err(format!("no listing within {ANSWER_WITHIN:?}")))
    }
}
