//! Tracks whether a connection sends requests. Without requests, replicas send fewer heartbeats; a connection that
//! starts to send requests wakes them, and repeats that while it is active.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Interval of the heartbeats of a replica that was woken.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of the heartbeats of a replica in an idle mesh.
pub(crate) const IDLE_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A connection without a request for this long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// Interval at which a busy connection wakes the replicas.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a replica stays awake: longer than any connection that woke it is busy without waking it again.
pub(crate) const AWAKE_FOR: Duration = Duration::from_secs(4);

/// While the connection is busy, a replica without a heartbeat for this long is silent: frozen, gone, or cut
/// off.
pub(crate) const SILENCE: Duration = Duration::from_millis(350);

/// The same while it is idle.
const IDLE_SILENCE: Duration = Duration::from_millis(1500);

/// The requests of a connection over time.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    requests: Mutex<Requests>,
    began: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    /// The first one after an idle time.
    first: Option<Instant>,
    latest: Option<Instant>,
    /// When the replicas were last woken.
    woken: Option<Instant>,
}

impl Requests {
    fn is_busy(&self, now: Instant) -> bool {
        self.latest.is_some_and(|latest| now.duration_since(latest) < IDLE_AFTER)
    }
}

impl Activity {
    /// Records a request; returns whether the replicas are to be woken, which needs a connection.
    pub(crate) fn record(&self, now: Instant, is_connected: bool) -> bool {
        let mut requests = self.requests.lock();
        if !requests.is_busy(now) {
            requests.first = Some(now);
            self.began.notify_one();
        }
        requests.latest = Some(now);
        let is_due =
            is_connected && requests.woken.is_none_or(|woken| now.duration_since(woken) >= WAKE_INTERVAL);
        if is_due {
            requests.woken = Some(now);
        }
        is_due
    }

    /// Whether there was a request lately.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.requests.lock().is_busy(now)
    }

    /// Resolves at the first request after an idle time.
    pub(crate) async fn began(&self) {
        self.began.notified().await;
    }

    /// Whether a replica with this last heartbeat is alive. One that was alive in an idle mesh has a moment to
    /// send its next heartbeat after it was woken.
    pub(crate) fn is_alive(&self, last_heartbeat: Instant, now: Instant) -> bool {
        let requests = self.requests.lock();
        let silent_for = now.duration_since(last_heartbeat);
        match requests.first {
            Some(first) if requests.is_busy(now) => {
                let was_alive = first.duration_since(last_heartbeat) < IDLE_SILENCE;
                silent_for < SILENCE || was_alive && now.duration_since(first) < SILENCE
            }
            _ => silent_for < IDLE_SILENCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_woken_at_the_first_request_and_every_second_of_more() {
        let (activity, begin) = (Activity::default(), Instant::now());
        let woken: Vec<_> = (0..30)
            .filter(|tenths| activity.record(begin + Duration::from_millis(100) * *tenths, *tenths > 2))
            .collect();
        assert_eq!(woken, [3, 13, 23]);
        assert!(activity.is_busy(begin + Duration::from_secs(4)));
        assert!(!activity.is_busy(begin + Duration::from_secs(5)));
        assert!(activity.record(begin + Duration::from_secs(9), true));
    }

    #[test]
    fn a_replica_has_a_second_and_a_half_while_idle_and_a_third_of_a_second_after_it_was_woken() {
        let (activity, heartbeat) = (Activity::default(), Instant::now());
        let ms = Duration::from_millis;
        assert!(activity.is_alive(heartbeat, heartbeat + ms(1400)));
        assert!(!activity.is_alive(heartbeat, heartbeat + ms(1500)));
        activity.record(heartbeat + ms(900), true);
        assert!(activity.is_alive(heartbeat, heartbeat + ms(1200)), "it has just been woken");
        assert!(!activity.is_alive(heartbeat, heartbeat + ms(1250)));
        let (silent, woken) = (heartbeat, heartbeat + ms(9000));
        activity.record(woken, true);
        assert!(!activity.is_alive(silent, woken), "it was silent before");
        assert!(activity.is_alive(woken + ms(1000), woken + ms(1300)));
        activity.record(woken + ms(1300), true);
        assert!(!activity.is_alive(woken + ms(1000), woken + ms(1350)));
    }
}
