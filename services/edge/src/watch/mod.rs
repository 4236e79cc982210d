//! Watching (contract section 10): a read that is answered again each time its answer changes.
//!
//! A [`live_query`] is the actor of one distinct question. It looks at the answer when the head moves, by the
//! way of a plain read, and publishes what has changed as an [`event`], made once for all its watchers. A
//! [`watcher`] is one of those; it has at most one event waiting, the newest. An [`event_stream`] is the body
//! of an answer with one or several of them. When a question is looked at is decided by [`schedule`], and
//! what a watcher is sent by [`state`], both without I/O. [`look_queue`] spreads the looks at a block, and
//! [`delivery`] wakes the watchers.

mod delivery;
pub(crate) mod event;
pub(crate) mod event_stream;
pub(crate) mod http;
mod live_query;
mod look_queue;
pub(crate) mod registry;
mod schedule;
#[cfg(test)]
mod simulator;
mod state;
pub(crate) mod watcher;
