//! The state of the connection: whether a server is connected, else since when not. When a server of a
//! cluster dies, its clients reconnect to another one a moment later; until then requests wait instead of
//! failing.

use std::time::Duration;

use async_nats::{ClientError, ConnectErrorKind, Event};
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

/// How long after a loss requests wait for a new connection. Other servers of a cluster answer within a tenth
/// of it.
const RECONNECT_GRACE: Duration = Duration::from_millis(500);

/// The start of the error of a subscription that the server refuses, or has ended because permissions have changed, and
/// of that of a message. The subject follows in quotes.
const SUBSCRIPTION_REFUSED: &str = "permissions violation for subscription to \"";
const MESSAGE_REFUSED: &str = "permissions violation for publish to \"";

/// How long no message is sent to a subject after the server has refused one.
const REFUSAL_LIFE: Duration = Duration::from_secs(10);

/// Most subjects of refused messages that are remembered, the latest ones.
const MAX_REFUSED: usize = 100;

/// Longest time between the client's event of a connection and the change of the client's own state.
const EVENT_LEAD: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How often a server was connected.
    connects: u64,
    /// When the connection was lost, unless there is one.
    lost: Option<Instant>,
}

/// The state of a connection, as its events report it.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Sender<State>,
    /// Why the last attempt to connect failed.
    failure: Mutex<Option<ClientError>>,
    /// The subject of a subscription that the server has refused on this connection.
    refused: watch::Sender<Option<String>>,
    /// When the server has refused messages to subjects.
    refused_messages: Mutex<Cache<String, Instant>>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            state: watch::Sender::default(),
            failure: Mutex::default(),
            refused: watch::Sender::default(),
            refused_messages: Mutex::new(Cache::new(MAX_REFUSED)),
        }
    }
}

impl Link {
    /// Updates the state by an event of the connection, and logs the event.
    pub(crate) fn on_event(&self, event: &Event) {
        match event {
            Event::Connected => {
                *self.failure.lock() = None;
                self.refused.send_replace(None);
                self.state.send_modify(|state| *state = State { connects: state.connects + 1, lost: None });
            }
            Event::Disconnected => self.state.send_modify(|state| state.lost = Some(Instant::now())),
            // Permission violations are among these; they are mistakes of the configuration.
            Event::ServerError(error) => {
                tracing::warn!(%error, "the bus refuses something");
                let text = error.to_string();
                if let Some(subject) = refused(&text, SUBSCRIPTION_REFUSED) {
                    self.refused.send_replace(Some(subject));
                } else if let Some(subject) = refused(&text, MESSAGE_REFUSED) {
                    self.refused_messages.lock().insert(subject, Instant::now());
                }
                return;
            }
            // A failed attempt, a few times a second: logged when its reason changes.
            Event::ClientError(error) => {
                if self.failure.lock().replace(error.clone()).as_ref() != Some(error) {
                    tracing::warn!(%error, "{}", self.failure());
                }
                return;
            }
            _ => {}
        }
        tracing::info!(%event, "bus");
    }

    /// Why there is no connection.
    pub(crate) fn failure(&self) -> &'static str {
        let refused = ClientError::Other(ConnectErrorKind::AuthorizationViolation.to_string());
        match &*self.failure.lock() {
            Some(error) if *error == refused => "the message bus refuses the credentials",
            _ => "the message bus is unreachable",
        }
    }

    /// The subject of a subscription that the server has refused.
    pub(crate) fn refused(&self) -> watch::Receiver<Option<String>> {
        self.refused.subscribe()
    }

    /// Whether the server has refused a message to a subject a moment ago.
    pub(crate) fn refuses(&self, subject: &str) -> bool {
        let refused = self.refused_messages.lock();
        !refused.is_empty() && refused.peek(subject).is_some_and(|at| at.elapsed() < REFUSAL_LIFE)
    }

    /// How often a server was connected.
    pub(crate) fn connects(&self) -> u64 {
        self.state.borrow().connects
    }

    /// Resolves when `is_connected` is true.
    pub(crate) async fn connected(&self, is_connected: impl Fn() -> bool) {
        let mut changes = self.state.subscribe();
        while !is_connected() {
            // The client sends the event just before it changes its own state.
            let State { connects, lost } = *changes.borrow_and_update();
            if connects > 0 && lost.is_none() {
                sleep(EVENT_LEAD).await;
            } else if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether there is a connection; one that was just lost may be restored until `deadline`.
    pub(crate) async fn is_back(&self, is_connected: impl Fn() -> bool, deadline: Instant) -> bool {
        let mut changes = self.state.subscribe();
        let State { connects, lost } = *changes.borrow();
        // Checked after the count was read: a later connection increases it.
        if is_connected() {
            return true;
        }
        if connects == 0 {
            return false;
        }
        // The event of a loss comes a moment after the loss.
        let until = lost.unwrap_or_else(Instant::now) + RECONNECT_GRACE;
        timeout_at(until.min(deadline), changes.wait_for(|state| state.connects > connects)).await.is_ok()
    }
}

/// The subject of an error of the server that begins so, in lower case.
fn refused(error: &str, beginning: &str) -> Option<String> {
    let start = error.to_ascii_lowercase().find(beginning)? + beginning.len();
    Some(error[start..].split('"').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_connection_lost_a_moment_ago_is_waited_for() {
        let (link, never) = (Link::default(), || false);
        let within = |time: Duration| Instant::now() + time;
        let long = Duration::from_secs(60);
        assert!(!link.is_back(never, within(long)).await, "there never was one");
        link.on_event(&Event::Connected);
        link.on_event(&Event::Disconnected);
        assert!(!link.is_back(never, within(Duration::from_millis(20))).await, "the deadline counts");
        let (is_back, ()) = tokio::join!(link.is_back(never, within(long)), async {
            tokio::task::yield_now().await;
            link.on_event(&Event::Connected);
        });
        assert!(is_back);
        link.on_event(&Event::Disconnected);
        assert!(!link.is_back(never, within(long)).await, "the grace has an end");
        assert!(link.is_back(|| true, within(long)).await);
    }

    #[tokio::test]
    async fn waiting_for_a_connection_ends_with_the_connection_and_not_with_its_event() {
        let (link, is_connected) = (Link::default(), AtomicBool::new(false));
        let connected = link.connected(|| is_connected.load(Ordering::Relaxed));
        tokio::pin!(connected);
        assert!(futures_util::poll!(&mut connected).is_pending());
        link.on_event(&Event::Connected);
        assert!(futures_util::poll!(&mut connected).is_pending(), "the client does not say so yet");
        is_connected.store(true, Ordering::Relaxed);
        connected.await;
    }
}
