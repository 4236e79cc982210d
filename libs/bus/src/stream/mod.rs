//! Pull streams (contract section 6): a position in, chunks and the next position out.
//!
//! A stream is *opened* like any other operation and then *pulled*: the reader holds the position, any
//! replica answers any pull, and the same position always gives the same bytes. So workers keep no state, a
//! slow reader costs its window, and the death of a replica loses nothing. `wire` is the format of the
//! messages, `puller` decides without I/O, `pull_stream` and `chunk_connection` do the I/O, `route` answers.

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
