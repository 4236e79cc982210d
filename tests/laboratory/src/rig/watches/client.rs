//! A client that watches over HTTP/1.1 like a browser's `EventSource`: when its stream ends, it reconnects after
//! the `retry` delay with `Last-Event-ID`.

use std::{
    hash::{DefaultHasher, Hasher as _},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use mesh_testbed::http1::{BodyReader, Connection, RawAnswer};
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::clients::Seen;
use crate::watches::{
    connect,
    events::{Event, EventReader},
    watch_request,
};

/// Longest silence of a gateway, which sends a comment at least every 15 s.
const SILENCE: Duration = Duration::from_secs(30);
/// Most bytes in one read.
const PIECE_BYTES: usize = 16 << 10;
/// Reconnect delay of a browser without a `retry` line.
const RETRY: Duration = Duration::from_secs(3);

/// One client.
pub(super) struct Client {
    path: String,
    /// Decides the source address.
    number: usize,
    seen: Arc<Mutex<Seen>>,
    last: Option<Answer>,
    /// When its stream ended, until it has a new one.
    ended: Option<Instant>,
    retry: Duration,
}

/// An answer that a client received.
#[derive(Clone, Copy, Debug)]
struct Answer {
    height: u64,
    digest: u64,
}

/// How an answer relates to the client's previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The first answer, or another one at a greater height.
    New,
    /// An answer at a lower height.
    Older,
    /// An answer at the same height.
    SameHeight,
    /// The same answer at a greater height, on one stream.
    SameAnswer,
    /// The same answer at a greater height, at the beginning of a stream: W6 compares heights.
    BegunAgain,
}

impl Verdict {
    fn of(last: Option<Answer>, next: Answer, is_first: bool) -> Self {
        let Some(last) = last else { return Self::New };
        match next.height.cmp(&last.height) {
            std::cmp::Ordering::Less => Self::Older,
            std::cmp::Ordering::Equal => Self::SameHeight,
            std::cmp::Ordering::Greater if next.digest != last.digest => Self::New,
            std::cmp::Ordering::Greater if is_first => Self::BegunAgain,
            std::cmp::Ordering::Greater => Self::SameAnswer,
        }
    }
}

/// Why a client's stream ended.
enum Outcome {
    /// The edge ended it in order.
    Ended,
    /// The connection was refused.
    Unconnected,
    /// Anything else.
    Failed(String),
}

impl Client {
    pub(super) fn new(path: &str, number: usize, seen: &Arc<Mutex<Seen>>) -> Self {
        let (path, seen) = (path.to_owned(), Arc::clone(seen));
        Self { path, number, seen, last: None, ended: None, retry: RETRY }
    }

    /// Watches at the first of these edges, then at the next one, and so on, as behind a load balancer that removes
    /// an edge that stops.
    pub(super) async fn run(mut self, edges: Vec<SocketAddr>, turns: Arc<Semaphore>) {
        for edge in edges.into_iter().cycle() {
            let outcome = self.watch(edge, &turns).await;
            {
                let mut seen = self.seen.lock();
                match outcome {
                    Outcome::Ended => {
                        self.ended = Some(Instant::now());
                        seen.ended += 1;
                    }
                    Outcome::Unconnected => seen.unconnected += 1,
                    // A browser does not reconnect after another status.
                    Outcome::Failed(why) => return seen.failures.push(why),
                }
            }
            sleep(self.retry).await;
        }
    }

    /// Watches until the stream is over.
    async fn watch(&mut self, edge: SocketAddr, turns: &Semaphore) -> Outcome {
        // Reconnecting clients do not wait for each other, like browsers.
        let turn = if self.last.is_none() { turns.acquire().await.ok() } else { None };
        let mut stream = match timeout(SILENCE, self.open(edge)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(outcome)) => return outcome,
            Err(_) => return Outcome::Failed(format!("no answer in {SILENCE:?}")),
        };
        let (mut turn, mut events, mut piece) = (turn, EventReader::new(1), Vec::new());
        let mut is_first = true;
        loop {
            match timeout(SILENCE, stream.next(&mut piece, PIECE_BYTES)).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) if events.is_torn() => {
                    return Outcome::Failed("a stream ended within an event".to_owned());
                }
                Ok(Ok(false)) => return Outcome::Ended,
                Ok(Err(error)) => return Outcome::Failed(format!("a stream broke: {error}")),
                Err(_) => return Outcome::Failed(format!("nothing came in {SILENCE:?}")),
            }
            events.push(&piece);
            let now = Instant::now();
            if let Some(ended) = self.ended.take() {
                self.seen.lock().back.push(now - ended);
            }
            loop {
                match events.next() {
                    Ok(Some(event)) => {
                        if self.take(&event, now, is_first) {
                            is_first = false;
                            turn.take();
                        }
                    }
                    Ok(None) => break,
                    Err(why) => return Outcome::Failed(why),
                }
            }
            self.retry = events.retry.unwrap_or(self.retry);
        }
    }

    /// Opens a stream.
    async fn open(&self, edge: SocketAddr) -> Result<BodyReader, Outcome> {
        let stream = connect(edge, self.number, None).await.map_err(|_| Outcome::Unconnected)?;
        let mut connection = Connection::over(stream);
        let request = watch_request(&self.path, self.last.map(|last| last.height));
        connection.send(request.as_bytes()).await?;
        let body = connection.head_then_body().await?;
        let RawAnswer { status, .. } = body.head;
        match body.head.header("content-type") {
            Some("text/event-stream") if status == 200 => Ok(body),
            _ => Err(Outcome::Failed(format!("{status} in the place of a stream"))),
        }
    }

    /// Records an event. Returns whether it is an answer.
    fn take(&mut self, event: &Event, now: Instant, is_first: bool) -> bool {
        let mut seen = self.seen.lock();
        seen.problems += usize::from(event.height.is_none());
        seen.longest_event = seen.longest_event.max(event.data.len());
        let Some(height) = event.height else { return false };
        let mut digest = DefaultHasher::new();
        digest.write(&event.data);
        let answer = Answer { height, digest: digest.finish() };
        match Verdict::of(self.last, answer, is_first) {
            Verdict::New => {}
            Verdict::Older => seen.older += 1,
            Verdict::SameHeight => seen.same_height += 1,
            Verdict::SameAnswer => seen.same_answer += 1,
            Verdict::BegunAgain => seen.begun_again += 1,
        }
        seen.open += usize::from(self.last.is_none());
        seen.received.push((height, now));
        self.last = Some(answer);
        true
    }
}

impl From<std::io::Error> for Outcome {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("a stream did not begin: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_sent_newer_answers_only() {
        let answer = |height, digest| Answer { height, digest };
        let verdict = |next, is_first| Verdict::of(Some(answer(5, 1)), next, is_first);
        assert_eq!(Verdict::of(None, answer(5, 1), true), Verdict::New);
        for is_first in [false, true] {
            assert_eq!(verdict(answer(6, 2), is_first), Verdict::New);
            assert_eq!(verdict(answer(5, 2), is_first), Verdict::SameHeight);
            assert_eq!(verdict(answer(4, 2), is_first), Verdict::Older);
        }
        assert_eq!(verdict(answer(6, 1), false), Verdict::SameAnswer);
        assert_eq!(verdict(answer(6, 1), true), Verdict::BegunAgain);
    }
}
