//! Pull streams (contract section 6): a position in, chunks and the next position out.
//!
//! A stream is *opened* like any other operation and then *pulled*: the reader has the position, any replica
//! answers any pull, and the same position always gives the same bytes. So replicas have no state of a
//! stream, a slow reader takes no more memory than its window, and a stream continues when a replica dies.
//! `wire` is the format of the messages, `puller` the state machine without I/O, `pull_stream` and
//! `chunk_connection` do the I/O, `route` answers.

pub(crate) mod chunk_connection;
mod messages;
pub(crate) mod metrics;
mod position;
mod pull_range;
mod pull_stream;
pub mod puller;
mod route;
pub mod wire;

pub use messages::{Chunks, Open, OpenReply, Piece, Pull};
pub use position::{MAX_CHUNK_BYTES, MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD, Position, Totals};
pub use pull_stream::{PullOptions, PullStream};
pub use puller::PullLimits;
pub use wire::PullBudget;
