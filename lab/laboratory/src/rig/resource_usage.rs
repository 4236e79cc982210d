//! The resource usage of each process, and the request counts of the edges, read from their metrics.

use std::{collections::BTreeMap, time::Duration};

use mesh_launcher::{control::Row, services::SERVICES};
use tokio::time::{Instant, interval};

use crate::{metrics, private::PrivateMesh};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The resources to compare, each with its allowed growth: a share of the earlier value plus an absolute
/// amount.
const RESOURCES: [Resource; 4] = [
    Resource { name: "process_memory_usage_bytes", unit: "bytes of memory", share: 0.5, absolute: 32 << 20 },
    Resource {
        name: "process_open_file_descriptor_count",
        unit: "file descriptors",
        share: 0.0,
        absolute: 8,
    },
    // Threads for blocking work start and end.
    Resource { name: "process_thread_count", unit: "threads", share: 0.0, absolute: 4 },
    Resource { name: "mesh_process_tasks", unit: "tasks", share: 0.0, absolute: 8 },
];

struct Resource {
    name: &'static str,
    unit: &'static str,
    share: f64,
    absolute: u64,
}

/// The usage of each resource, the maximum over the replicas of each service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceUsage(BTreeMap<(String, &'static str), u64>);

impl ResourceUsage {
    /// Reads the current usage; processes that do not answer are left out.
    pub(crate) async fn read(mesh: &PrivateMesh) -> Self {
        let mut levels = BTreeMap::new();
        for row in rows(mesh) {
            let Some(metrics) = metrics::fetch(&row).await else { continue };
            for resource in &RESOURCES {
                let level = levels.entry((row.service.clone(), resource.name)).or_default();
                *level = (metrics::sum(&metrics, resource.name) as u64).max(*level);
            }
        }
        Self(levels)
    }

    /// Descriptions of the values of `now` that exceed what is allowed after `self`.
    fn exceeded(&self, now: &Self) -> Vec<String> {
        let mut exceeded = Vec::new();
        for ((service, name), before) in &self.0 {
            let Some(resource) = RESOURCES.iter().find(|resource| resource.name == *name) else { continue };
            let most = (*before as f64 * (1.0 + resource.share)) as u64 + resource.absolute;
            let level = now.0.get(&(service.clone(), name)).copied();
            if level.is_none_or(|level| level > most) {
                exceeded
                    .push(format!("{service}: {level:?} {}, {before} before, at most {most}", resource.unit));
            }
        }
        exceeded
    }

    /// Waits until nothing exceeds what is allowed; returns what still exceeds it.
    pub(crate) async fn wait_until_back(&self, mesh: &PrivateMesh, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        let mut ticks = interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let exceeded = self.exceeded(&Self::read(mesh).await);
            if exceeded.is_empty() || Instant::now() >= deadline {
                return exceeded;
            }
        }
    }
}

/// Counts the HTTP requests that edges answered, by their own metrics.
#[derive(Debug, Default)]
pub(crate) struct EdgeRequestCount {
    /// Counts of the running edges at the beginning, by process id.
    before: BTreeMap<u32, u64>,
    /// Sum of the counts of killed edges, read just before each kill.
    killed: u64,
    /// Number of killed edges, and answers that arrived between the last reading of their counts and the
    /// kill.
    pub(crate) kills: u64,
    pub(crate) gap: u64,
}

impl EdgeRequestCount {
    /// Reads the counts of the edges that run now.
    pub(crate) async fn begin(mesh: &PrivateMesh) -> Self {
        let mut before = BTreeMap::new();
        for row in rows(mesh).into_iter().filter(|row| row.service == "edge") {
            before.insert(row.pid, counted(&row).await.unwrap_or_default());
        }
        Self { before, ..Self::default() }
    }

    /// Records the last known count of a killed edge, and the answers that arrived after that reading.
    pub(crate) fn note_kill(&mut self, pid: u32, counted: u64, gap: u64) {
        let since = self.before.remove(&pid).unwrap_or_default();
        self.killed += counted.saturating_sub(since);
        self.kills += 1;
        self.gap += gap;
    }

    /// Sum of the counts of all edges, killed ones included; `None` when an edge does not answer.
    pub(crate) async fn sum(&self, mesh: &PrivateMesh) -> Option<u64> {
        let mut all = self.killed;
        for row in rows(mesh).into_iter().filter(|row| row.service == "edge") {
            let since = self.before.get(&row.pid).copied().unwrap_or_default();
            all += counted(&row).await?.saturating_sub(since);
        }
        Some(all)
    }
}

pub(crate) async fn current_count(mesh: &PrivateMesh, pid: u32) -> Option<u64> {
    counted(&rows(mesh).into_iter().find(|row| row.pid == pid)?).await
}

async fn counted(edge: &Row) -> Option<u64> {
    Some(metrics::sum(&metrics::fetch(edge).await?, "http_server_request_duration_seconds_count") as u64)
}

fn rows(mesh: &PrivateMesh) -> Vec<Row> {
    let mut rows = mesh.supervisor.rows();
    rows.retain(|row| SERVICES.iter().any(|service| service.name == row.service));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_may_rise_a_little_and_no_process_may_be_missing() {
        let of = |memory, tasks| {
            let key = |name| ("edge".to_owned(), name);
            let resource = [(key("process_memory_usage_bytes"), memory), (key("mesh_process_tasks"), tasks)];
            ResourceUsage(resource.into_iter().collect())
        };
        let before = of(64 << 20, 20);
        assert!(before.exceeded(&of(128 << 20, 28)).is_empty());
        assert_eq!(before.exceeded(&of(129 << 20, 29)).len(), 2);
        assert_eq!(before.exceeded(&ResourceUsage::default()).len(), 2);
    }
}
