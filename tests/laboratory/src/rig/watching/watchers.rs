//! Clients that watch, each with one stream at a time on its own connection. A client whose stream ends reconnects
//! after the `retry` delay with the last height that it received (W6).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh_testbed::{
    http1::{Body, Connection as Http, Dial},
    poll,
};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    rig::clients::{connection::Connection, download_results::Refusal},
    watches::{
        events::{Event, EventReader},
        watch_request,
    },
};

/// Longest silence of a stream: a heartbeat comes every 15 s (W4), later when its edge is frozen.
const SILENCE: Duration = Duration::from_secs(21);
/// Reconnect delay without a `retry` line.
const PAUSE: Duration = Duration::from_secs(1);
/// Most bytes in one read.
const PIECE_BYTES: usize = 64 << 10;
/// Greatest number of reads on one stream (W10).
pub(crate) const MAX_READS: usize = 16;

/// The number of an answer's content: equal contents have equal numbers. `None`: it is not an answer.
pub(crate) type Numbering = dyn Fn(&[u8]) -> Option<usize> + Send + Sync;

/// What a client watches: one read by its own path, or several by `GET /watch`.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Paths and queries of the reads.
    pub(crate) reads: Vec<Arc<str>>,
}

impl Watch {
    fn path(&self) -> String {
        match &*self.reads {
            [read] => read.to_string(),
            reads => {
                let encode = |read: &Arc<str>| {
                    let pieces = read.bytes().map(|byte| match byte {
                        b'&' | b'%' | b'+' | b'#' => format!("%{byte:02X}"),
                        byte => char::from(byte).to_string(),
                    });
                    format!("read={}", pieces.collect::<String>())
                };
                format!("/watch?{}", reads.iter().map(encode).collect::<Vec<_>>().join("&"))
            }
        }
    }

    /// Whether the client reconnects with the last height: the edge ignores it on a stream of several reads.
    fn resumes(&self) -> bool {
        self.reads.len() == 1
    }
}

/// A state that a client received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedState {
    /// Index of the read.
    pub(crate) read: usize,
    /// When it was received.
    pub(crate) at: Instant,
    pub(crate) what: State,
}

/// A state of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Answer { height: u64, content: usize },
    Problem(String),
}

/// How a stream ended, or the attempt to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The response had another status than 200.
    Refused(Refusal),
    /// The connection broke.
    Broken(String),
    /// The edge ended it in order.
    Regular,
    /// No byte was received for [`SILENCE`].
    Silent,
    /// The received bytes violate the contract.
    Malformed(String),
}

/// A stream, or an attempt to open one.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The number of its client.
    pub(crate) client: usize,
    /// The height with which its client reconnected.
    pub(crate) last_height: Option<u64>,
    pub(crate) asked: Instant,
    /// When a head with status 200 was received.
    pub(crate) opened: Option<Instant>,
    /// In order of time.
    pub(crate) received: Vec<ReceivedState>,
    /// `None` as long as it is open.
    pub(crate) end: Option<(Instant, StreamEnd)>,
}

/// Clients that watch. They are aborted when this is dropped.
pub(crate) struct Watchers {
    clients: JoinSet<()>,
    shared: Arc<Shared>,
}

/// The streams of a finished run, and what they watched.
#[derive(Default)]
pub(crate) struct WatchRecord {
    pub(crate) watches: Vec<Watch>,
    /// In the order of their requests.
    pub(crate) streams: Vec<Stream>,
    pub(crate) counts: (u64, u64),
}

struct Shared {
    edge: SocketAddr,
    watches: Vec<Watch>,
    number: Arc<Numbering>,
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    streams: Vec<Stream>,
    /// Requests sent, and heads received.
    counts: (u64, u64),
    /// By client and read, the last state received on any stream.
    last: Vec<Vec<Option<State>>>,
}

impl Watchers {
    /// Starts a client for each of these.
    pub(crate) fn start(edge: SocketAddr, watches: Vec<Watch>, number: Arc<Numbering>) -> Self {
        let last = watches.iter().map(|watch| vec![None; watch.reads.len()]).collect();
        let state = Mutex::new(Recorded { last, ..Recorded::default() });
        let shared = Arc::new(Shared { edge, watches, number, state });
        let mut clients = JoinSet::new();
        for client in 0..shared.watches.len() {
            clients.spawn(Arc::clone(&shared).watch(client));
        }
        Self { clients, shared }
    }

    /// Numbers of requests sent and of answers received so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.shared.state.lock().counts
    }

    /// Waits until the last state of each client's reads equals a plain read. Returns the remaining differences.
    pub(crate) async fn differences(&self, within: Duration) -> Vec<String> {
        let mut open: Vec<(usize, usize)> = self.shared.all_reads().collect();
        let compare = async || {
            self.shared.retain_different(&mut open).await.map_err(|why| vec![why])?;
            if open.is_empty() { Ok(()) } else { Err(self.shared.describe(&open)) }
        };
        poll(within, compare).await.err().unwrap_or_default()
    }

    /// Ends all clients.
    pub(crate) async fn end(mut self) -> WatchRecord {
        self.clients.shutdown().await;
        let Shared { watches, state, .. } = &*self.shared;
        let Recorded { streams, counts, .. } = std::mem::take(&mut *state.lock());
        WatchRecord { watches: watches.clone(), streams, counts }
    }
}

impl Shared {
    /// Every read of every client.
    fn all_reads(&self) -> impl Iterator<Item = (usize, usize)> {
        let of = |(client, watch): (usize, &Watch)| (0..watch.reads.len()).map(move |read| (client, read));
        self.watches.iter().enumerate().flat_map(of)
    }

    /// Retains the reads whose last state differs from a plain read.
    async fn retain_different(&self, open: &mut Vec<(usize, usize)>) -> Result<(), String> {
        let unanswered = |error| format!("a plain read at the end was not answered: {error}");
        let mut connection = Connection::open(self.edge).await.map_err(unanswered)?;
        let mut paths: Vec<Arc<str>> =
            open.iter().map(|(client, read)| Arc::clone(&self.watches[*client].reads[*read])).collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            self.state.lock().counts.0 += 1;
            let plain = connection.get(&path).await.map_err(unanswered)?.raw;
            self.state.lock().counts.1 += 1;
            let number = (plain.status == 200).then(|| (self.number)(&plain.body)).flatten();
            let state = self.state.lock();
            open.retain(|(client, read)| match &state.last[*client][*read] {
                Some(State::Answer { content, .. }) if self.watches[*client].reads[*read] == path => {
                    number != Some(*content)
                }
                _ => true,
            });
        }
        Ok(())
    }

    fn describe(&self, open: &[(usize, usize)]) -> Vec<String> {
        let state = self.state.lock();
        let text = |(client, read): &(usize, usize)| {
            let (path, last) = (&self.watches[*client].reads[*read], &state.last[*client][*read]);
            let mut streams = state.streams.iter().filter(|stream| stream.client == *client);
            let end = streams.next_back().and_then(|stream| stream.end.as_ref());
            format!(
                "client {client} of {path} received {last:?} last, and a plain read another answer; {end:?}"
            )
        };
        open.iter().map(text).collect()
    }

    async fn watch(self: Arc<Self>, client: usize) {
        let mut last_height = None;
        loop {
            let index = {
                let (asked, mut state) = (Instant::now(), self.state.lock());
                let (opened, received, end) = (None, Vec::new(), None);
                state.streams.push(Stream { client, last_height, asked, opened, received, end });
                state.streams.len() - 1
            };
            let mut events = EventReader::new(self.watches[client].reads.len());
            let end = self.follow(index, client, last_height, &mut events).await.unwrap_or_else(|end| end);
            last_height = self.end(index, end).filter(|_| self.watches[client].resumes()).or(last_height);
            sleep(events.retry.unwrap_or(PAUSE)).await;
        }
    }

    /// Records the end of a stream; returns the last height received.
    fn end(&self, index: usize, end: StreamEnd) -> Option<u64> {
        let stream = &mut self.state.lock().streams[index];
        stream.end = Some((Instant::now(), end));
        stream.received.iter().rev().find_map(|received| match received.what {
            State::Answer { height, .. } => Some(height),
            State::Problem(_) => None,
        })
    }

    /// Opens a stream and records its events; returns how it ended.
    async fn follow(
        &self,
        index: usize,
        client: usize,
        last_height: Option<u64>,
        events: &mut EventReader,
    ) -> Result<StreamEnd, StreamEnd> {
        let broken = |error: std::io::Error| StreamEnd::Broken(error.to_string());
        let request = watch_request(&self.watches[client].path(), last_height);
        let opening = async {
            let mut connection = Http::over(Dial::default().connect(self.edge).await?);
            self.state.lock().counts.0 += 1;
            connection.send(request.as_bytes()).await?;
            let head = connection.head().await?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            Ok((connection, head))
        };
        let opened = timeout(SILENCE, opening).await.map_err(|_| StreamEnd::Silent)?;
        let (mut connection, (head, mut body)) = opened.map_err(broken)?;
        self.state.lock().counts.1 += 1;
        let is_stream = head.header("content-type") == Some("text/event-stream");
        if head.status != 200 {
            return Ok(StreamEnd::Refused(refusal(&mut connection, &head, body).await));
        }
        if !is_stream || matches!(body, Body::Length(_)) {
            return Err(StreamEnd::Malformed(format!("it is no stream: {head:?}")));
        }
        self.state.lock().streams[index].opened = Some(Instant::now());
        let mut piece = Vec::new();
        loop {
            let read = timeout(SILENCE, connection.piece(&mut body, &mut piece, PIECE_BYTES)).await;
            if !read.map_err(|_| StreamEnd::Silent)?.map_err(broken)? {
                return Ok(match events.is_torn() {
                    true => StreamEnd::Malformed("it ends within an event".to_owned()),
                    false => StreamEnd::Regular,
                });
            }
            let at = Instant::now();
            events.push(&piece);
            while let Some(event) = events.next().map_err(StreamEnd::Malformed)? {
                self.record(index, client, event, at)?;
            }
        }
    }

    fn record(&self, index: usize, client: usize, event: Event, at: Instant) -> Result<(), StreamEnd> {
        let Event { read, height, data } = event;
        let text = || String::from_utf8_lossy(&data).into_owned();
        let what = match height {
            Some(height) => {
                let content = (self.number)(&data).ok_or_else(|| StreamEnd::Malformed(text()))?;
                State::Answer { height, content }
            }
            None => State::Problem(text()),
        };
        let mut state = self.state.lock();
        let last = state.last[client].get_mut(read);
        *last.ok_or_else(|| StreamEnd::Malformed(format!("of read {read}")))? = Some(what.clone());
        state.streams[index].received.push(ReceivedState { read, at, what });
        Ok(())
    }
}

async fn refusal(connection: &mut Http, head: &mesh_testbed::http1::RawAnswer, mut body: Body) -> Refusal {
    let (mut message, mut piece) = (Vec::new(), Vec::new());
    // An incomplete error text is good enough.
    while let Ok(Ok(true)) = timeout(SILENCE, connection.piece(&mut body, &mut piece, PIECE_BYTES)).await {
        message.append(&mut piece);
    }
    Refusal {
        status: head.status,
        has_retry_after: head.header("retry-after").is_some(),
        message: String::from_utf8_lossy(&message).into_owned(),
    }
}
