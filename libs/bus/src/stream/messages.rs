//! The messages to an actor that open or pull a stream, and their replies.

use actix::Message;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use mesh_problem::Problem;
use proto_msgs::{StreamingOperation, v2::ExportInfo};

use super::{
    position::{Position, Totals},
    wire::PullBudget,
};
use crate::answer::{Head, RequestScope};

/// Opens a stream. A request that cannot be served must be refused here, not by a pull.
#[derive(Debug)]
pub struct Open<R> {
    /// The operation's request.
    pub request: R,
    /// The byte of the file that the first position should be at. An operation that cannot seek replies with
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
    /// Description of the file. Totals in it are checked at the end of the stream.
    #[prost(message, required, tag = "1")]
    pub info: ExportInfo,
    /// The first position, at most [`MAX_POSITION_BYTES`](super::MAX_POSITION_BYTES) bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub first: Bytes,
    /// The byte of the file that `first` is at.
    #[prost(uint64, tag = "3")]
    pub from_byte: u64,
    /// Media type of the file.
    #[prost(string, tag = "4")]
    pub content_type: String,
    /// Differs between files with different bytes; empty when the same request may give another file later.
    #[prost(string, tag = "5")]
    pub etag: String,
    /// CRC-32C of the whole file, when known in advance.
    #[prost(uint32, optional, tag = "6")]
    pub crc32c: Option<u32>,
    /// The newest block of what is exported, when the store decides that at the opening.
    #[prost(message, optional, tag = "7")]
    pub head: Option<Head>,
    /// Whether the same request can never give another file: it names the chain.
    #[prost(bool, tag = "8")]
    pub is_permanent: bool,
}

/// Pulls a few chunks. The same position always gives the same bytes (S4).
#[derive(Debug)]
pub struct Pull<R> {
    /// The operation's request, the same as at the opening.
    pub request: R,
    /// The position to begin at.
    pub position: Position,
    /// The most to return.
    pub budget: PullBudget,
    /// Trace and mailbox count of this message.
    pub scope: RequestScope,
}

impl<R: StreamingOperation> Message for Pull<R> {
    type Result = Result<Chunks, Problem>;
}

/// The reply to a pull.
pub struct Chunks {
    /// The positions of the next pulls, as far as they are known before the chunks are read: of the one after
    /// this, and of up to two more if each has the same budget. The reader sends these pulls while the chunks
    /// of this one still arrive.
    pub next_positions: Vec<Position>,
    /// At most as many as the budget allows, each up to [`PullBudget::chunk_bytes`] long and not empty,
    /// except at the end of the stream. Fewer are allowed; none at all before the end of the stream is a
    /// failure.
    pub pieces: BoxStream<'static, Result<Piece, Problem>>,
}

/// Some bytes of a stream.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The bytes.
    pub bytes: Bytes,
    /// The position after them.
    pub after: Position,
    /// Set on the last piece of the whole stream.
    pub end: Option<Totals>,
}
