//! Memory of processes, read from Linux's `/proc`; unknown on other systems.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use crate::{bench::cost::memory_kib, private::PrivateMesh};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A process whose memory is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    pid: u32,
    /// Resident memory at first, KiB.
    at_first: u64,
    /// Greatest resident memory since, KiB.
    pub(crate) at_most: u64,
}

impl ProcessMemory {
    /// Reads the memory of all processes of these names for the first time; those whose memory is unknown are
    /// left out.
    pub(crate) fn of_all(mesh: &PrivateMesh, names: &[&str]) -> Vec<Self> {
        names.iter().flat_map(|name| mesh.pids(name)).filter_map(Self::start).collect()
    }

    fn start(pid: u32) -> Option<Self> {
        let at_first = memory_kib(pid)?;
        Some(Self { pid, at_first, at_most: at_first })
    }

    /// Greatest growth since the first sample, KiB.
    pub(crate) fn grown(&self) -> u64 {
        self.at_most.saturating_sub(self.at_first)
    }
}

/// Awaits a future and samples the processes meanwhile.
pub(crate) async fn while_watched<T>(processes: &mut [ProcessMemory], wait: impl Future<Output = T>) -> T {
    let (mut wait, mut ticks) = (pin!(wait), interval(POLL_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for process in &mut *processes {
            process.at_most = process.at_most.max(memory_kib(process.pid).unwrap_or_default());
        }
        tokio::select! {
            ended = &mut wait => return ended,
            _ = ticks.tick() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn memory_allocated_meanwhile_is_measured() {
        let mut own = [ProcessMemory::start(std::process::id()).unwrap()];
        while_watched(&mut own, async {
            let taken = vec![1_u8; 128 << 20];
            tokio::time::sleep(POLL_INTERVAL * 3).await;
            assert_eq!(taken[taken.len() / 2], 1);
        })
        .await;
        assert!(own[0].grown() > 32 << 10, "{own:?}");
    }
}
