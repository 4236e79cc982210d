//! Clients that watch reads (contract section 10), and checks of their streams.
//!
//! A client of [`watchers`] keeps a stream open, reconnects with the last height that it received, and
//! records each event in a [`record`]. [`judge`] checks the streams of a run independently of their
//! content; drills with known answers check the content, too. [`traffic`] changes the watched rows.

mod http2;
pub(crate) mod judge;
pub(crate) mod record;
pub(super) mod traffic;
pub(crate) mod watchers;
mod web_socket;
