//! Watching over a WebSocket (contract section 13): `GET /watch` with `Upgrade: websocket`.
//!
//! A [`handshake`] checks the upgrade and answers 101. The server then takes the socket away from hyper, and a
//! [`session`] serves it on a [`socket`]: [`frame`] reads the client's text frames and encodes the edge's. Each
//! [`watch`] is begun on the gateway's thread, by the rules of a plain watch, and has its events from a watcher.

#[cfg(test)]
mod autobahn;
mod frame;
pub(crate) mod handshake;
pub(crate) mod session;
mod socket;
mod watch;
