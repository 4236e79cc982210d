//! What clients watched, and every event of their streams.

use std::{
    hash::{DefaultHasher, Hasher as _},
    sync::Arc,
};

use form_urlencoded::Serializer;
use tokio::time::Instant;

use crate::{rig::clients::download_results::Refusal, watches::HeightAt};

/// What a client watches: one read by its own path, or several by `GET /watch`.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Paths and queries of the reads.
    pub(crate) reads: Vec<Arc<str>>,
    pub(crate) over: Over,
}

/// What a client watches over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    EventStream,
    WebSocket,
}

impl Watch {
    /// This many clients, each with one of these reads in turn.
    pub(crate) fn each(paths: &[String], count: usize, over: Over) -> Vec<Self> {
        let reads: Vec<Arc<str>> = paths.iter().map(|path| Arc::from(path.as_str())).collect();
        (0..count)
            .map(|client| Self { reads: vec![Arc::clone(&reads[client % reads.len()])], over })
            .collect()
    }

    pub(super) fn path(&self) -> String {
        match &*self.reads {
            [read] => read.to_string(),
            reads => {
                let pairs = reads.iter().map(|read| ("read", read));
                format!("/watch?{}", Serializer::new(String::new()).extend_pairs(pairs).finish())
            }
        }
    }

    /// Whether the client reconnects with the last height: an edge ignores it on an event stream of several reads.
    pub(super) fn resumes(&self) -> bool {
        self.reads.len() == 1
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReceivedState {
    /// Index of the read.
    pub(crate) read: usize,
    pub(crate) at: Instant,
    pub(crate) what: State,
}

/// A state of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Answer { height: u64, content: usize },
    Problem(String),
}

impl State {
    /// The height of an answer.
    pub(crate) fn height(&self) -> Option<u64> {
        match self {
            Self::Answer { height, .. } => Some(*height),
            Self::Problem(_) => None,
        }
    }
}

/// How a stream ended, or the attempt to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The connection was refused.
    Unconnected(String),
    /// The response had another status than 200.
    Refused(Refusal),
    /// The connection broke.
    Broken(String),
    /// The edge ended it in order.
    Regular,
    /// No byte was received for a longer time than that between two heartbeats.
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

/// The streams of a run, and what they watched.
#[derive(Default)]
pub(crate) struct WatchRecord {
    pub(crate) watches: Vec<Watch>,
    /// In the order of their requests.
    pub(crate) streams: Vec<Stream>,
    /// Requests sent, and heads received.
    pub(crate) counts: (u64, u64),
    /// Bytes of the longest answer or problem.
    pub(crate) longest_event: usize,
}

impl WatchRecord {
    pub(crate) fn answers(&self) -> usize {
        self.heights().count()
    }

    /// The heights of all answers, and when they were received.
    pub(crate) fn heights(&self) -> impl Iterator<Item = HeightAt> {
        let received = self.streams.iter().flat_map(|stream| &stream.received);
        received.filter_map(|received| Some((received.what.height()?, received.at.into_std())))
    }

    /// The streams of each client, in order of time.
    pub(crate) fn by_client(&self) -> impl Iterator<Item = (usize, Vec<&Stream>)> {
        let mut clients = vec![Vec::new(); self.watches.len()];
        for stream in &self.streams {
            clients[stream.client].push(stream);
        }
        clients.into_iter().enumerate()
    }

    /// Number of clients that have received an answer.
    pub(crate) fn open(&self) -> usize {
        let has_answer =
            |stream: &&&Stream| stream.received.iter().any(|state| state.what.height().is_some());
        self.by_client().filter(|(_, streams)| streams.iter().any(|stream| has_answer(&stream))).count()
    }
}

/// A number that equal bodies have in common.
pub(super) fn digest(body: &[u8]) -> Option<usize> {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    usize::try_from(hasher.finish()).ok()
}
