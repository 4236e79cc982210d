//! The tests of the bus with real servers, as one program.

#![allow(clippy::unwrap_used)] // in what the tests share

mod asking;
mod permissions;
mod streams;
mod tls;
