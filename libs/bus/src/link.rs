//! Whether a server is connected, and since when not. A server of a cluster that dies takes its connections with it; those
//! to another one are there a moment later, and until then asks wait instead of failing.

use std::time::Duration;

use async_nats::Event;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// How long after a loss a new connection is waited for: the other servers of a cluster answer within a tenth of it.
const AGAIN_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How often a server was connected.
    times: u64,
    /// When it was lost, if it is.
    lost: Option<Instant>,
}

/// The state of a connection, as its events tell it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    state: watch::Sender<State>,
}

impl Link {
    /// Notes an event of the connection, and logs it.
    pub(crate) fn note(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.state.send_modify(|state| *state = State { times: state.times + 1, lost: None });
            }
            Event::Disconnected => self.state.send_modify(|state| state.lost = Some(Instant::now())),
            // Among others what the server refuses: that is a mistake in permissions, and must be seen.
            Event::ServerError(error) => {
                tracing::warn!(%error, "the bus refuses something");
                return;
            }
            _ => {}
        }
        tracing::info!(%event, "bus");
    }

    /// Whether a connection is there, or comes back that was lost a moment ago; waits no longer than this.
    pub(crate) async fn is_back(&self, is_connected: impl Fn() -> bool, deadline: Instant) -> bool {
        let mut changes = self.state.subscribe();
        let State { times, lost } = *changes.borrow();
        // RequestScope behind the count: whatever comes now is counted.
        if is_connected() {
            return true;
        }
        if times == 0 {
            return false;
        }
        // The event of a loss comes a moment after the loss.
        let until = lost.unwrap_or_else(Instant::now) + AGAIN_WITHIN;
        timeout_at(until.min(deadline), changes.wait_for(|state| state.times > times)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_lost_a_moment_ago_is_waited_for() {
        let (link, never) = (Link::default(), || false);
        let within = |time: Duration| Instant::now() + time;
        let long = Duration::from_secs(60);
        assert!(!link.is_back(never, within(long)).await, "it was never there");
        link.note(&Event::Connected);
        link.note(&Event::Disconnected);
        assert!(!link.is_back(never, within(Duration::from_millis(20))).await, "the deadline counts");
        let (is_back, ()) = tokio::join!(link.is_back(never, within(long)), async {
            tokio::task::yield_now().await;
            link.note(&Event::Connected);
        });
        assert!(is_back);
        link.note(&Event::Disconnected);
        assert!(!link.is_back(never, within(long)).await, "not for long");
        assert!(link.is_back(|| true, within(long)).await);
    }
}
