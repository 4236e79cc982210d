//! Clients that watch, each with one stream at a time. A client whose stream ends reconnects after the
//! `retry` delay with the last height that it received (W6), at the next edge if there are several.

use std::{
    collections::HashSet,
    net::SocketAddr,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant as StdInstant},
};

use mesh::failure::Failure;
use mesh_testbed::{
    Answer, TlsClient,
    http1::{Body, Connection as Http, Dial},
    poll,
};
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

pub(crate) use super::record::{Over, ReceivedState, State, Stream, StreamEnd, Watch, WatchRecord};
use crate::{
    rig::clients::{connection::Connection, download_results::Refusal},
    watches::{Event, EventReader, HeightAt, OPENED_AT_ONCE, connect, watch_request},
};

/// Longest silence of a stream: a heartbeat comes every 15 s (W4), later when its edge is frozen.
pub(super) const SILENCE: Duration = Duration::from_secs(21);
/// Reconnect delay without a `retry` line.
const PAUSE: Duration = Duration::from_secs(1);
/// Most bytes in one read.
const PIECE_BYTES: usize = 64 << 10;
/// Greatest number of reads on one stream (W10).
pub(crate) const MAX_READS: usize = 16;
/// Longest time until all clients of a crowd have their first event.
pub(crate) const OPEN_WITHIN: Duration = Duration::from_secs(60);

/// The connection of a client.
type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The number of an answer's content: equal contents have equal numbers. `None`: it is not an answer.
pub(crate) type Numbering = dyn Fn(&[u8]) -> Option<usize> + Send + Sync;

/// Clients that watch. They are aborted when this is dropped.
pub(crate) struct Watchers {
    clients: JoinSet<()>,
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) edge: SocketAddr,
    /// Where clients watch by TLS instead.
    secured: Option<(SocketAddr, TlsClient)>,
    pub(super) watches: Vec<Watch>,
    number: Arc<Numbering>,
    /// Limits the connections that a crowd opens at once; a client that reconnects does not wait.
    pub(super) turns: Option<Semaphore>,
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    record: WatchRecord,
    /// By client and read, the last state received on any stream.
    last: Vec<Vec<Option<State>>>,
}

impl Watchers {
    /// Starts a client for each of these, which watches by TLS where the edge has an address for that.
    pub(crate) fn start(
        edge: SocketAddr,
        secured: Option<(SocketAddr, TlsClient)>,
        watches: Vec<Watch>,
        number: Arc<Numbering>,
    ) -> Self {
        let shared = Shared::new(edge, secured, watches, number, None);
        let every_client = 0..shared.watches.len();
        Self::spawn(shared, every_client)
    }

    /// Connects a crowd from many local addresses, each client with one read, and waits until each has its
    /// first event. The last `over_http2` of them share connections of HTTP/2, so many each.
    ///
    /// # Errors
    /// When a client has none in time.
    pub(crate) async fn crowd(
        edge: SocketAddr,
        watches: Vec<Watch>,
        over_http2: (usize, usize),
    ) -> Result<Self, Failure> {
        let (count, turns) = (watches.len(), Some(Semaphore::new(OPENED_AT_ONCE)));
        let shared = Shared::new(edge, None, watches, Arc::new(super::record::digest), turns);
        let (over_http2, on_a_connection) = over_http2;
        let mut watchers = Self::spawn(shared, 0..count - over_http2);
        for first in (count - over_http2..count).step_by(on_a_connection.max(1)) {
            let clients = first..(first + on_a_connection).min(count);
            watchers.clients.spawn(Arc::clone(&watchers.shared).watch_over_http2(clients));
        }
        let are_open = async || {
            let (open, failure) = watchers.look(|record| (record.open(), record.failed().into_iter().next()));
            let why = failure.map(|failure| format!("; {}", failure.message)).unwrap_or_default();
            let too_few = || Failure::failed(format!("only {open} of {count} watchers are connected{why}"));
            (open == count).then_some(()).ok_or_else(too_few)
        };
        poll(OPEN_WITHIN, are_open).await?;
        Ok(watchers)
    }

    fn spawn(shared: Arc<Shared>, clients: Range<usize>) -> Self {
        let mut tasks = JoinSet::new();
        for client in clients {
            tasks.spawn(Arc::clone(&shared).watch(client));
        }
        Self { clients: tasks, shared }
    }

    /// Numbers of requests sent and of answers received so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.look(|record| record.counts)
    }

    /// Reads the record so far.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&WatchRecord) -> T) -> T {
        look(&self.shared.state.lock().record)
    }

    /// Heights received from this time on.
    pub(crate) fn received_since(&self, from: StdInstant) -> Vec<HeightAt> {
        self.look(|record| record.heights().filter(|(_, at)| *at >= from).collect())
    }

    /// Waits until the last state of each client's reads equals a plain read that was made meanwhile: an answer
    /// that changes with every block is never the newest for long. Returns the remaining differences.
    pub(crate) async fn differences(&self, within: Duration) -> Vec<String> {
        let mut open: Vec<(usize, usize)> = self.shared.all_reads().collect();
        let mut plain = HashSet::new();
        let mut compare = async || {
            self.shared.retain_different(&mut open, &mut plain).await.map_err(|why| vec![why])?;
            if open.is_empty() { Ok(()) } else { Err(self.shared.describe(&open)) }
        };
        // The first round reads every path, which takes long on a slow machine. The time limit is for what differs then.
        match compare().await {
            Ok(()) => Vec::new(),
            Err(_) => poll(within, compare).await.err().unwrap_or_default(),
        }
    }

    pub(crate) async fn end(mut self) -> WatchRecord {
        self.clients.shutdown().await;
        std::mem::take(&mut self.shared.state.lock().record)
    }
}

impl Shared {
    fn new(
        edge: SocketAddr,
        secured: Option<(SocketAddr, TlsClient)>,
        watches: Vec<Watch>,
        number: Arc<Numbering>,
        turns: Option<Semaphore>,
    ) -> Arc<Self> {
        let last = watches.iter().map(|watch| vec![None; watch.reads.len()]).collect();
        let record = WatchRecord { watches: watches.clone(), ..WatchRecord::default() };
        Arc::new(Self { edge, secured, watches, number, turns, state: Mutex::new(Recorded { record, last }) })
    }

    fn all_reads(&self) -> impl Iterator<Item = (usize, usize)> {
        let of = |(client, watch): (usize, &Watch)| (0..watch.reads.len()).map(move |read| (client, read));
        self.watches.iter().enumerate().flat_map(of)
    }

    /// Reads the paths of open reads, adds their answers to `plain`, and retains the reads whose last state is
    /// none of these.
    async fn retain_different(
        &self,
        open: &mut Vec<(usize, usize)>,
        plain: &mut HashSet<(Arc<str>, usize)>,
    ) -> Result<(), String> {
        let unanswered = |error| format!("a plain read at the end was not answered: {error}");
        let mut connection = Connection::open(self.edge).await.map_err(unanswered)?;
        let mut paths: Vec<Arc<str>> =
            open.iter().map(|(client, read)| Arc::clone(&self.watches[*client].reads[*read])).collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            self.count(1, 0);
            let answer = connection.get(&path).await.map_err(unanswered)?.raw;
            self.count(0, 1);
            let number = (answer.status == 200).then(|| (self.number)(&answer.body)).flatten();
            plain.extend(number.map(|number| (path, number)));
        }
        let state = self.state.lock();
        open.retain(|(client, read)| match &state.last[*client][*read] {
            Some(State::Answer { content, .. }) => {
                !plain.contains(&(Arc::clone(&self.watches[*client].reads[*read]), *content))
            }
            _ => true,
        });
        Ok(())
    }

    fn describe(&self, open: &[(usize, usize)]) -> Vec<String> {
        let state = self.state.lock();
        let text = |(client, read): &(usize, usize)| {
            let (path, last) = (&self.watches[*client].reads[*read], &state.last[*client][*read]);
            let mut streams = state.record.streams.iter().filter(|stream| stream.client == *client);
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
            let turns = self.turns.as_ref().filter(|_| last_height.is_none());
            let turn = match turns {
                Some(turns) => turns.acquire().await.ok(),
                None => None,
            };
            let (index, watch) = (self.begin(client, last_height), &self.watches[client]);
            let mut events = EventReader::new(watch.reads.len());
            let end = match watch.over {
                Over::EventStream => self.follow(index, turn, &mut events).await,
                Over::WebSocket => self.follow_over_web_socket(index, turn).await,
            };
            let end = end.unwrap_or_else(|end| end);
            last_height = self.end(index, end).filter(|_| watch.resumes()).or(last_height);
            sleep(events.retry.unwrap_or(PAUSE)).await;
        }
    }

    /// Begins the record of a stream; returns its index.
    pub(super) fn begin(&self, client: usize, last_height: Option<u64>) -> usize {
        let (asked, mut state) = (Instant::now(), self.state.lock());
        let (opened, received, end) = (None, Vec::new(), None);
        state.record.streams.push(Stream { client, last_height, asked, opened, received, end });
        state.record.streams.len() - 1
    }

    /// Records the head of a stream.
    pub(super) fn open(&self, index: usize) {
        self.state.lock().record.streams[index].opened = Some(Instant::now());
    }

    /// Counts a request sent, or an answer received.
    pub(super) fn count(&self, requests: u64, answers: u64) {
        let counts = &mut self.state.lock().record.counts;
        *counts = (counts.0 + requests, counts.1 + answers);
    }

    /// Records the end of a stream; returns the last height received.
    pub(super) fn end(&self, index: usize, end: StreamEnd) -> Option<u64> {
        let stream = &mut self.state.lock().record.streams[index];
        stream.end = Some((Instant::now(), end));
        stream.received.iter().rev().find_map(|received| received.what.height())
    }

    /// Opens a stream and records its events; returns how it ended.
    async fn follow(
        &self,
        index: usize,
        mut turn: Option<SemaphorePermit<'_>>,
        events: &mut EventReader,
    ) -> Result<StreamEnd, StreamEnd> {
        let broken = |error: std::io::Error| StreamEnd::Broken(error.to_string());
        let mut connection = Http::over(self.dial(index).await?);
        let (client, last_height) = self.stream_of(index);
        let request = watch_request(&self.watches[client].path(), last_height);
        let opening = async {
            self.count(1, 0);
            connection.send(request.as_bytes()).await?;
            Ok(connection.head().await?.ok_or(std::io::ErrorKind::UnexpectedEof)?)
        };
        let opened = timeout(SILENCE, opening).await.map_err(|_| StreamEnd::Silent)?;
        let (head, mut body) = opened.map_err(broken)?;
        self.count(0, 1);
        let is_stream = head.header("content-type") == Some("text/event-stream");
        if head.status != 200 {
            return Ok(StreamEnd::Refused(refusal(&mut connection, &head, body).await));
        }
        if !is_stream || matches!(body, Body::Length(_)) {
            return Err(StreamEnd::Malformed(format!("it is no stream: {head:?}")));
        }
        self.open(index);
        let mut piece = Vec::new();
        loop {
            let read = timeout(SILENCE, connection.piece(&mut body, &mut piece, PIECE_BYTES)).await;
            if !read.map_err(|_| StreamEnd::Silent)?.map_err(broken)? {
                return Ok(match events.is_torn() {
                    true => StreamEnd::Malformed("it ends within an event".to_owned()),
                    false => StreamEnd::Regular,
                });
            }
            if self.receive(index, &piece, events)? {
                turn.take();
            }
        }
    }

    pub(super) async fn dial(&self, index: usize) -> Result<Socket, StreamEnd> {
        let (client, _) = self.stream_of(index);
        let connecting = async {
            if let Some((edge, tls)) = &self.secured {
                let secured = tls.over(Dial::default().connect(*edge).await?).await?;
                return Ok(Either::Right(Box::new(secured)));
            }
            let plain = match self.turns {
                Some(_) => connect(self.edge, client, None).await?,
                None => Dial::default().connect(self.edge).await?,
            };
            Ok(Either::Left(plain))
        };
        let connected = timeout(SILENCE, connecting).await.map_err(|_| StreamEnd::Silent)?;
        connected.map_err(|error: std::io::Error| StreamEnd::Unconnected(error.to_string()))
    }

    pub(super) fn stream_of(&self, index: usize) -> (usize, Option<u64>) {
        let stream = &self.state.lock().record.streams[index];
        (stream.client, stream.last_height)
    }

    /// Records the events in received bytes; returns whether there is one.
    pub(super) fn receive(
        &self,
        index: usize,
        piece: &[u8],
        events: &mut EventReader,
    ) -> Result<bool, StreamEnd> {
        let (at, mut is_event) = (Instant::now(), false);
        events.push(piece);
        while let Some(event) = events.next().map_err(StreamEnd::Malformed)? {
            self.record(index, event, at)?;
            is_event = true;
        }
        Ok(is_event)
    }

    pub(super) fn record(&self, index: usize, event: Event, at: Instant) -> Result<(), StreamEnd> {
        let Event { read, height, data } = event;
        let length = data.len();
        let what = match height {
            Some(height) => match (self.number)(data.as_bytes()) {
                Some(content) => State::Answer { height, content },
                None => return Err(StreamEnd::Malformed(data)),
            },
            None => State::Problem(data),
        };
        let mut state = self.state.lock();
        let Recorded { record, last } = &mut *state;
        record.longest_event = record.longest_event.max(length);
        let last = last[record.streams[index].client].get_mut(read);
        *last.ok_or_else(|| StreamEnd::Malformed(format!("of read {read}")))? = Some(what.clone());
        record.streams[index].received.push(ReceivedState { read, at, what });
        Ok(())
    }
}

async fn refusal(connection: &mut Http<Socket>, head: &Answer, mut body: Body) -> Refusal {
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
