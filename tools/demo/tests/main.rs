//! The demo network: its rows alone, against the forms of a recorded network, and in a real PostgreSQL.

#![allow(clippy::unwrap_used)]

mod commands;
mod coverage;
mod forms;
mod history;
mod parsed;
mod store;

use history::money_adds_up;
use parsed::{Parsed, history, rows_of};
