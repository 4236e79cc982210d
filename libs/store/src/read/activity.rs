//! Whether a server is read from. What is checked several times a second while it is, is checked seldom
//! otherwise.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// A server without a new read for this long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// The reads from a server over time.
#[derive(Debug)]
pub(super) struct ReadActivity {
    created: Instant,
    /// Milliseconds from `created` to the latest read, plus one; 0 = there was none.
    latest_ms: AtomicU64,
    began: watch::Sender<()>,
}

impl Default for ReadActivity {
    fn default() -> Self {
        Self { created: Instant::now(), latest_ms: AtomicU64::new(0), began: watch::Sender::new(()) }
    }
}

impl ReadActivity {
    /// Records a read that begins.
    pub(super) fn record(&self) {
        self.record_at(self.now_ms());
    }

    fn record_at(&self, now: u64) {
        if !is_busy(self.latest_ms.swap(now, Ordering::Relaxed), now) {
            self.began.send_replace(());
        }
    }

    /// Whether a read has begun lately.
    pub(super) fn is_busy(&self) -> bool {
        is_busy(self.latest_ms.load(Ordering::Relaxed), self.now_ms())
    }

    /// A receiver of a change at each first read after an idle time.
    pub(super) fn begins(&self) -> watch::Receiver<()> {
        self.began.subscribe()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

fn is_busy(latest_ms: u64, now_ms: u64) -> bool {
    latest_ms > 0 && u128::from(now_ms.saturating_sub(latest_ms)) < IDLE_AFTER.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_after_an_idle_time_is_a_change() {
        let (activity, idle_after) = (ReadActivity::default(), 2000);
        assert!(!activity.is_busy());
        let mut begins = activity.begins();
        for first in [1, 10_000] {
            for (at, is_first) in
                [(first, true), (first + idle_after - 1, false), (first + idle_after, false)]
            {
                activity.record_at(at);
                assert_eq!(begins.has_changed().unwrap(), is_first, "{at}");
                begins.mark_unchanged();
            }
        }
        activity.record();
        assert!(activity.is_busy());
    }
}
