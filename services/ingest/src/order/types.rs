//! What goes into the state machine and what comes out of it.

use std::{fmt, time::Duration};

use mesh_bus::HaltReason as Reason;

pub use super::slot::Ticket;

/// The settings of the work.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Most heights that are fetched, and that are decoded, at the same time.
    pub fetch_ahead: usize,
    /// Most bytes of blocks that are held.
    pub held_bytes: usize,
    /// The first height of an empty store; the node's oldest block when there is none.
    pub from: Option<u64>,
    /// The hash of the stored block that a first block without a predecessor may follow.
    pub after_hash: Option<String>,
}

/// A stored block that the next one continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its height.
    pub height: u64,
    /// Its hash, lower-case hex.
    pub hash: String,
}

/// What a fetched block says of its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name of its chain.
    pub chain_id: String,
    /// Its hash, lower-case hex.
    pub hash: String,
    /// The hash of the block before it; empty in the first block of a chain.
    pub parent: String,
    /// The bytes that it occupies.
    pub bytes: usize,
}

/// A halt: the height at which nothing is written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// The height.
    pub height: u64,
    /// The kind of the reason.
    pub reason: Reason,
    /// The reason in words.
    pub text: String,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { height, reason, text } = self;
        write!(f, "halted at block {height}: {}: {text}", reason.name())
    }
}

/// Why a block could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFetched {
    /// The node has no such block so far.
    TooHigh,
    /// The node has no results of it so far.
    NoResultsYet,
    /// The node cannot be reached, or gives no block.
    Unavailable(String),
    /// It cannot be fetched until the cause is corrected.
    Never(Reason, String),
}

/// Why a block was not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDecoded {
    /// There is no decoder to ask.
    Unavailable(String),
    /// The one that was asked has not replied in time.
    Late(String),
    /// It cannot be decoded until the cause is corrected.
    Never(Reason, String),
}

/// Why blocks were not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStored {
    /// The head of the store is another block.
    Moved,
    /// Another session is appending.
    Busy,
    /// The database cannot be reached; blocks may be stored.
    Unavailable(String),
    /// A row of the first block does not fit the block.
    Unfit(String),
    /// PostgreSQL refuses a row of one of them.
    Refused(String),
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The store was read: the chain's name, and the newest block.
    Store(Option<String>, Option<Head>),
    /// The store could not be read.
    StoreUnavailable(String),
    /// The node has answered with its chain's name, oldest and newest height.
    Node(String, u64, u64),
    /// The node has not answered.
    NodeUnavailable(String),
    /// A height of the node was announced.
    Announced(u64),
    /// A block was fetched.
    Fetched(u64, Ticket, Link),
    /// A block was not fetched.
    NotFetched(u64, Ticket, NotFetched),
    /// A block was decoded, into so many rows.
    Decoded(u64, Ticket, usize),
    /// A block was not decoded.
    NotDecoded(u64, Ticket, NotDecoded),
    /// The blocks up to this height are stored, in so much time.
    Stored(u64, Duration),
    /// The blocks that were to be stored are not.
    NotStored(NotStored),
}

/// Something to do. Each is answered by one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the store.
    ReadStore,
    /// Fetch a block.
    Fetch(u64, Ticket),
    /// Decode a fetched block.
    Decode(u64, Ticket),
    /// Store decoded blocks from the first to the last height.
    Store(u64, u64),
}
