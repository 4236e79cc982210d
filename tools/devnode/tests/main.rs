//! The development node over raw HTTP, and the application over its socket.

#![allow(clippy::unwrap_used)]

mod application;
mod node;
mod transactions;
