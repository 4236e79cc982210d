//! What processes keep in memory, read from Linux's `/proc`. Elsewhere nothing is known of it.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

/// How often one looks.
const LOOK: Duration = Duration::from_millis(100);

/// A process whose memory is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    /// What people call it.
    pub(crate) name: String,
    /// Its process id.
    pub(crate) pid: u32,
    /// What it had at first, KiB.
    pub(crate) at_first: u64,
    /// The most that it had since, KiB.
    pub(crate) at_most: u64,
}

impl Resident {
    /// Begins to look at a process; nothing where nothing is known of it.
    pub(crate) fn of(name: String, pid: u32) -> Option<Self> {
        let at_first = resident_kib(pid)?;
        Some(Self { name, pid, at_first, at_most: at_first })
    }

    /// What it had more than at first, KiB.
    pub(crate) fn grown(&self) -> u64 {
        self.at_most.saturating_sub(self.at_first)
    }
}

/// Waits for something, and looks at processes meanwhile.
pub(crate) async fn while_watched<T>(processes: &mut [Resident], wait: impl Future<Output = T>) -> T {
    let (mut wait, mut looks) = (pin!(wait), interval(LOOK));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for process in &mut *processes {
            process.at_most = process.at_most.max(resident_kib(process.pid).unwrap_or_default());
        }
        tokio::select! {
            ended = &mut wait => return ended,
            _ = looks.tick() => {}
        }
    }
}

/// What a process has in memory now, KiB.
fn resident_kib(pid: u32) -> Option<u64> {
    in_kib(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// What the system holds for all TCP connections, KiB: its pages are of 4 KiB where this is used.
pub(crate) fn tcp_kib() -> Option<u64> {
    let sockets = std::fs::read_to_string("/proc/net/sockstat").ok()?;
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let pages: u64 = line.split(" mem ").nth(1)?.trim().parse().ok()?;
    Some(pages * 4)
}

fn in_kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_name() {
        assert_eq!(in_kib("Name:\tedge\nVmHWM:\t   99 kB\nVmRSS:\t   42 kB\n", "VmRSS:"), Some(42));
        assert_eq!(in_kib("Name:\tedge\n", "VmRSS:"), None);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_was_taken_in_between_is_seen() {
        let mut own = [Resident::of("rig".to_owned(), std::process::id()).unwrap()];
        while_watched(&mut own, async {
            let taken = vec![1_u8; 64 << 20];
            tokio::time::sleep(LOOK * 3).await;
            assert_eq!(taken[taken.len() / 2], 1);
        })
        .await;
        assert!(own[0].grown() > 32 << 10, "{own:?}");
        assert!(tcp_kib().is_some());
    }
}
