//! The command line seen from outside: each command against real servers and services.

#![allow(clippy::unwrap_used)]

mod command;
mod doctor;
mod documents;
mod export;
mod history;
mod ingest;
mod keys;
mod stub;
mod tx;
mod up;
mod usage;
mod watch;

use command::{Outcome, command, mesh, says};
use stub::{Reply, StubGateway};
use watch::{body, replying};
