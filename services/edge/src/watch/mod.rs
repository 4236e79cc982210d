//! Watching (contract section 10): a watch is a read that is repeated when its head changes.
//!
//! A [`live_query`] is the actor of one distinct read (question). A look is one repetition of the read, through
//! the path of a plain read. A changed answer is published as an [`event`], encoded once for all watchers. A
//! [`watcher`] has at most one pending event, the newest. An [`event_stream`] is the response body with the
//! events of one or more watchers. [`schedule`] decides when to read again and [`state`] what a watcher is
//! sent, both without I/O. [`look_queue`] limits concurrent looks, and [`delivery`] wakes the watchers.

mod context;
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
