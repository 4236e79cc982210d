//! Clients that follow a transaction until its state is final, by repeated reads and by a watch. No read that
//! begins after a client has received a state may return an earlier one.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    net::SocketAddr,
    time::Duration,
};

use mesh_transaction::TxHash;
use reqwest::{Client, RequestBuilder, header::ACCEPT};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::submitters::SubmissionOutcome;
use crate::watches::EventReader;

/// How long a transaction is followed that does not become final: a killed node loses those in its mempool.
const FOLLOWED_FOR: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// The state of a transaction, in the order in which they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Pending,
    Refused,
    Included,
}

impl State {
    fn read(body: &[u8]) -> Option<Self> {
        let json: Value = serde_json::from_slice(body).ok()?;
        match json["status"].as_str()? {
            "UNKNOWN" => Some(Self::Unknown),
            "PENDING" => Some(Self::Pending),
            "REFUSED" => Some(Self::Refused),
            "INCLUDED" => Some(Self::Included),
            _ => None,
        }
    }

    fn is_final(self) -> bool {
        matches!(self, Self::Refused | Self::Included)
    }

    /// Whether this state must not be returned after `earlier` was.
    fn is_backwards(self, earlier: Self) -> bool {
        match earlier {
            Self::Unknown => false,
            Self::Pending => self == Self::Unknown,
            Self::Refused | Self::Included => self != earlier,
        }
    }
}

/// Follows transactions and records the steps backwards.
pub(crate) struct Followers {
    client: Client,
    url: String,
    /// The latest state that a client has received of each transaction.
    received: RefCell<HashMap<TxHash, State>>,
    observations: Cell<usize>,
    /// Reads without a state: 503 while a relay is frozen or was just killed, for example.
    unanswered: Cell<usize>,
    backwards: RefCell<Vec<String>>,
}

impl Followers {
    pub(crate) fn new(client: Client, edge: SocketAddr) -> Self {
        Self {
            client,
            url: format!("http://{edge}/transaction"),
            received: RefCell::default(),
            observations: Cell::default(),
            unanswered: Cell::default(),
            backwards: RefCell::default(),
        }
    }

    /// Follows a transaction after a submission with this outcome.
    pub(crate) async fn follow(&self, hash: TxHash, outcome: &SubmissionOutcome) {
        match outcome {
            SubmissionOutcome::Accepted => self.receive(hash, State::Pending, "a submission"),
            SubmissionOutcome::Refused(_) => self.receive(hash, State::Refused, "a submission"),
            SubmissionOutcome::NotTaken(_) => return,
            _ => {}
        }
        let deadline = Instant::now() + FOLLOWED_FOR;
        tokio::join!(self.read_until_final(hash, deadline), async {
            // A watch that is refused or ends early is no step backwards.
            let _ = timeout_at(deadline, self.watch_until_final(hash)).await;
        });
    }

    async fn read_until_final(&self, hash: TxHash, deadline: Instant) {
        while Instant::now() < deadline {
            let earlier = self.earlier(hash);
            match self.read(hash).await {
                Some(state) => {
                    self.observe(hash, earlier, state, "a read");
                    if state.is_final() {
                        return;
                    }
                }
                None => self.unanswered.set(self.unanswered.get() + 1),
            }
            sleep(PAUSE).await;
        }
    }

    async fn read(&self, hash: TxHash) -> Option<State> {
        State::read(&self.request(hash).send().await.ok()?.bytes().await.ok()?)
    }

    async fn watch_until_final(&self, hash: TxHash) -> Option<()> {
        let (mut earlier, mut events) = (self.earlier(hash), EventReader::new(1));
        let mut stream = self.request(hash).header(ACCEPT, "text/event-stream").send().await.ok()?;
        while let Some(piece) = stream.chunk().await.ok()? {
            events.push(&piece);
            while let Some(event) = events.next().ok()? {
                let Some(state) = State::read(event.data.as_bytes()) else { continue };
                self.observe(hash, earlier, state, "an event");
                if state.is_final() {
                    return Some(());
                }
                earlier = state;
            }
        }
        None
    }

    fn request(&self, hash: TxHash) -> RequestBuilder {
        self.client.get(format!("{}/{hash}", self.url))
    }

    fn earlier(&self, hash: TxHash) -> State {
        self.received.borrow().get(&hash).copied().unwrap_or(State::Unknown)
    }

    fn observe(&self, hash: TxHash, earlier: State, state: State, what: &str) {
        self.observations.set(self.observations.get() + 1);
        // A refusal is open again when another relay's submission, at the same time, ends without an answer.
        let is_open_again = (earlier, state) == (State::Refused, State::Unknown);
        if state.is_backwards(earlier) && !is_open_again {
            self.backwards.borrow_mut().push(format!("{hash}: {what} said {state:?} after {earlier:?}"));
        }
        self.receive(hash, state, what);
    }

    fn receive(&self, hash: TxHash, state: State, what: &str) {
        let mut received = self.received.borrow_mut();
        let known = received.entry(hash).or_insert(state);
        if known.is_final() && state.is_final() && *known != state {
            self.backwards
                .borrow_mut()
                .push(format!("{hash}: {what} said {state:?}, another answer {known:?}"));
        }
        if known.is_backwards(state) {
            *known = state;
        }
    }

    /// The numbers of states received and of reads without a state, and the steps backwards.
    pub(crate) fn found(&self) -> (usize, usize, Vec<String>) {
        (self.observations.get(), self.unanswered.get(), self.backwards.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_only_go_forwards() {
        use State::{Included, Pending, Refused, Unknown};
        let forwards = [
            (Unknown, Pending),
            (Unknown, Included),
            (Pending, Pending),
            (Pending, Refused),
            (Included, Included),
        ];
        let backwards = [
            (Pending, Unknown),
            (Included, Unknown),
            (Included, Pending),
            (Refused, Included),
            (Refused, Pending),
        ];
        assert!(forwards.iter().all(|(earlier, state)| !state.is_backwards(*earlier)));
        assert!(backwards.iter().all(|(earlier, state)| state.is_backwards(*earlier)));
    }
}
