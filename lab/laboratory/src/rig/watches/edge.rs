//! The watches of an edge and their cost, read from its metrics.

use std::time::{Duration, Instant};

use mesh::failure::Failure;
use mesh_testbed::poll;

use crate::{metrics, private::PrivateMesh};

/// The state of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeState {
    /// When the metrics were read.
    pub(super) at: Instant,
    /// Open watches.
    pub(super) watches: usize,
    /// Watches closed so far because their client read nothing.
    pub(super) cut: usize,
    /// Resident memory, bytes.
    pub(super) memory: u64,
    /// Processor time so far.
    pub(super) cpu: Duration,
}

impl EdgeState {
    /// Reads the state of the edge with this process name.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn read(mesh: &PrivateMesh, name: &str) -> Result<Self, Failure> {
        let row = mesh.supervisor.rows().into_iter().find(|row| row.service == name);
        let text = match &row {
            Some(row) => metrics::fetch(row).await,
            None => None,
        };
        let text = text.ok_or_else(|| Failure::failed(format!("{name} tells no metrics")))?;
        let sum = |metric| metrics::sum(&text, metric);
        Ok(Self {
            at: Instant::now(),
            watches: sum("mesh_edge_watches") as usize,
            cut: sum("mesh_edge_watches_cut_total") as usize,
            memory: sum("process_memory_usage_bytes") as u64,
            cpu: Duration::from_secs_f64(sum("process_cpu_time_seconds_total")),
        })
    }

    /// Waits until an edge has this many watches.
    ///
    /// # Errors
    /// When it has not within this time.
    pub(super) async fn with_watches(
        mesh: &PrivateMesh,
        name: &str,
        count: usize,
        within: Duration,
    ) -> Result<Self, Failure> {
        poll(within, async || {
            let state = Self::read(mesh, name).await?;
            let wrong = || Failure::failed(format!("{name} has {} watches, not {count}", state.watches));
            if state.watches == count { Ok(state) } else { Err(wrong()) }
        })
        .await
    }

    /// Growth of the edge's memory since then for each of `count` watches, KiB.
    pub(super) fn kib_each(&self, before: &Self, count: usize) -> f64 {
        self.memory.saturating_sub(before.memory) as f64 / 1024.0 / count as f64
    }

    /// Milliseconds of processor time a second since then.
    pub(super) fn cpu_ms_a_second(&self, before: &Self) -> f64 {
        (self.cpu - before.cpu.min(self.cpu)).as_secs_f64() * 1e3 / (self.at - before.at).as_secs_f64()
    }
}
