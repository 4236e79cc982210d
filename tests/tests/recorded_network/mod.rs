//! A recorded run of a real test network, loaded and requested over HTTP and gRPC: every answer must equal
//! what the oracles compute from the loaded history, and what is loaded must equal the recorded files. The
//! recording is `../shared/data/smoketest-5000` next to the workspace; without it these tests say so and
//! pass.

mod check;
mod ledger;
mod lists;
mod loading;
mod reads;

use check::Check;
use recording::{Recording, with_recording};
pub(crate) mod recording;
