//! Pull streams (contract section 6): a position in, chunks and the next position out.
//!
//! A stream is *opened* like any other operation and then *pulled*: the reader holds the position, any replica answers
//! any pull, and the same position always gives the same bytes. So workers remember nothing, a slow reader costs its
//! window, and a replica that dies is nobody's loss. `wire` says what travels, `puller` decides without I/O,
//! `pulled` and `bulk` carry it out, `serve` answers, `simulator` tries the puller under every fault.

pub(crate) mod bulk;
mod pulled;
mod puller;
mod serve;
pub mod simulator;
mod stretch;
mod wire;

use actix::Message;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use mesh_problem::Problem;
use proto_msgs::{StreamingOperation, v2::ExportInfo};

use crate::answering::RequestScope;

pub(crate) use bulk::{Bulk, Pulling};
pub use pulled::{PullOptions, PullStream};
pub use puller::PullLimits;
pub(crate) use serve::answers_by;
pub use wire::PullBudget;

/// Greatest length of one chunk in bytes (S1): with its envelope below a bus payload of 1 MiB.
pub const MAX_CHUNK_BYTES: usize = 512 << 10;

/// Greatest length of a position in bytes.
pub const MAX_POSITION_BYTES: usize = 1 << 10;

/// How many pulls a reader may know the beginning of before the one in front of them is answered.
pub const MAX_POSITIONS_AHEAD: usize = 3;

/// A place in a stream: self-contained and opaque to everybody but the operation that made it (S3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position(Bytes);

impl Position {
    /// A position of these bytes; nothing when they are more than [`MAX_POSITION_BYTES`].
    pub fn new(bytes: impl Into<Bytes>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() <= MAX_POSITION_BYTES).then_some(Self(bytes))
    }

    /// The bytes it was made of.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What the end of a stream says of the whole of it (S7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Length of the whole file in bytes.
    pub bytes: u64,
    /// Rows of the whole file, when they were counted.
    pub rows: Option<u64>,
}

/// Opens a stream: everything that can be refused is refused in the answer to this.
#[derive(Debug)]
pub struct Open<R> {
    /// The operation's request.
    pub request: R,
    /// Which byte of the file the first position should stand at. An operation that cannot seek answers with 0.
    pub from_byte: u64,
    /// How it was asked.
    pub scope: RequestScope,
}

impl<R: StreamingOperation> Message for Open<R> {
    type Result = Result<OpenReply, Problem>;
}

/// A stream that can be pulled.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpenReply {
    /// What is streamed. Known totals are checked against the end.
    #[prost(message, required, tag = "1")]
    pub info: ExportInfo,
    /// Where pulling begins, at most [`MAX_POSITION_BYTES`] bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub first: Bytes,
    /// The byte of the file at which `first` stands.
    #[prost(uint64, tag = "3")]
    pub from_byte: u64,
    /// Media type of the file.
    #[prost(string, tag = "4")]
    pub content_type: String,
    /// Changes whenever any byte of the file does; empty when the same export may come out differently later.
    #[prost(string, tag = "5")]
    pub etag: String,
    /// CRC-32C of the whole file, when known in advance.
    #[prost(uint32, optional, tag = "6")]
    pub crc32c: Option<u32>,
}

/// Pulls a few chunks. RequestScope again, it gives the same bytes (S4).
#[derive(Debug)]
pub struct Pull<R> {
    /// The operation's request, the same as at the opening.
    pub request: R,
    /// Where to begin.
    pub position: Position,
    /// How much to give.
    pub budget: PullBudget,
    /// How it was asked.
    pub scope: RequestScope,
}

impl<R: StreamingOperation> Message for Pull<R> {
    type Result = Result<Chunks, Problem>;
}

/// What a pull gives.
pub struct Chunks {
    /// Where the next pulls begin, as far as that is known before the chunks are there: the one behind this, and at most
    /// two more behind pulls that ask for as much as this one. The reader asks for those already while these come, and
    /// its pipe does not run dry.
    pub next_positions: Vec<Position>,
    /// At most as many as the budget allows, each up to [`PullBudget::chunk_bytes`] long and none empty, except for an end.
    /// Fewer are fine; none at all without an end counts as a failure.
    pub pieces: BoxStream<'static, Result<Piece, Problem>>,
}

/// Some bytes of a stream.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The bytes.
    pub bytes: Bytes,
    /// The position behind them.
    pub after: Position,
    /// Set on the last piece of the whole stream.
    pub end: Option<Totals>,
}
