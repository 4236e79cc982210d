//! The demo network: its rows alone, against the forms of a recorded network, and in a real PostgreSQL.

#![allow(clippy::unwrap_used)]

mod commands;
mod coverage;
mod forms;
mod history;
mod parsed;
mod store;
