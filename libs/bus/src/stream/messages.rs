//! What an actor receives when a stream is opened or pulled, and what it returns.

use actix::Message;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use mesh_problem::Problem;
use proto_msgs::{StreamingOperation, v2::ExportInfo};

use super::{
    position::{Position, Totals},
    wire::PullBudget,
};
use crate::answer::RequestScope;

/// Opens a stream. All that can be refused is refused in the reply to this.
#[derive(Debug)]
pub struct Open<R> {
    /// The operation's request.
    pub request: R,
    /// Which byte of the file the first position should stand at. An operation that cannot seek answers with
    /// 0.
    pub from_byte: u64,
    /// Trace and mailbox count of this message.
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
    /// Where pulling begins, at most [`MAX_POSITION_BYTES`](super::MAX_POSITION_BYTES) bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub first: Bytes,
    /// The byte of the file at which `first` stands.
    #[prost(uint64, tag = "3")]
    pub from_byte: u64,
    /// Media type of the file.
    #[prost(string, tag = "4")]
    pub content_type: String,
    /// Changes whenever any byte of the file does; empty when the same export may come out differently
    /// later.
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
    /// Trace and mailbox count of this message.
    pub scope: RequestScope,
}

impl<R: StreamingOperation> Message for Pull<R> {
    type Result = Result<Chunks, Problem>;
}

/// What a pull gives.
pub struct Chunks {
    /// Where the next pulls begin, as far as that is known before the chunks are there: the one behind this,
    /// and at most two more behind pulls of the same budget. The reader sends those while the chunks of this
    /// one still arrive.
    pub next_positions: Vec<Position>,
    /// At most as many as the budget allows, each up to [`PullBudget::chunk_bytes`] long and none empty,
    /// except for an end. Fewer are fine; none at all without an end counts as a failure.
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
