//! Decoders: from a block and its results to rows, always the same rows for the same block.

mod events;
mod rows;
mod service;

use mesh_bus::Bus;
use mesh_store::append::RowFault;

pub use self::rows::StatedRow;
use crate::{
    block::{FetchedBlock, Row},
    node::MAX_REPLY_BYTES,
};

/// The beginning of the types of events that are rows, unless configured.
pub const EVENT_PREFIX: &str = "mesh.";

/// Which decoder makes rows of blocks.
#[derive(Debug, Clone)]
pub enum Decoder {
    /// The built-in one: events whose types begin with this text.
    Events(String),
    /// A service on the bus.
    Service(Bus),
}

/// Why a block has no rows.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A row is wrong.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// The decoder replied with an error, or with something that is no reply.
    #[error("the decoder failed: {0}")]
    Failed(String),
    /// The block cannot be read.
    #[error("the block cannot be read: {0}")]
    Unreadable(String),
    /// The block is larger than a message may be.
    #[error("the block has {bytes} bytes, more than the {most} of a message; raise `max_payload` of the bus")]
    TooLarge {
        /// Its bytes, compressed.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The decoder's reply is too large.
    #[error("the decoder's reply has more than {MAX_REPLY_BYTES} bytes unpacked")]
    ReplyTooLarge,
    /// There is no decoder to ask; another attempt may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The decoder that was asked did not reply in time; another replica may.
    #[error("{0}")]
    Late(String),
}

impl Decoder {
    /// The rows of a block.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub async fn decode(&self, block: &FetchedBlock) -> Result<Vec<Row>, DecodeError> {
        match self {
            Self::Events(prefix) => events::decode(block, prefix),
            Self::Service(bus) => service::decode(block, bus).await,
        }
    }
}
