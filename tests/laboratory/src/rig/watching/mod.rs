//! Clients that watch reads (contract section 10), and what is held of their streams.
//!
//! A [`watchers`] client keeps a stream open, comes back with the last height that it was told, and records each
//! event. [`judge`] says afterwards what is wrong with the streams of a run, whatever the answers are; a drill
//! that knows these judges them, too. [`changes`] are rows that change while they are watched.

pub(crate) mod changes;
pub(crate) mod judge;
pub(crate) mod traffic;
pub(crate) mod watchers;
