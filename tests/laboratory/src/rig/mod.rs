//! `mesh rig`: long drills, each decided by a seed in every choice of it.
//!
//! Comes in: a drill and a seed. Goes out: a table of what was met and whether the bars hold, the same as
//! JSON into a file.

pub(crate) mod args;
mod chaos;
mod clients;
mod engine;
mod fates;
mod faults;
mod flood;
mod ground;
mod kill;
mod questions;
mod reads;
mod report;
mod rolling;
mod streams;
mod traffic;

use std::path::Path;

use mesh::failure::Failure;
use rand::Rng as _;
use serde_json::Value;

use crate::rig::args::{Drill, RigArgs};

/// Greatest seed that is made up here, short enough to be typed.
const LONGEST_SEED: u64 = 1_000_000;

/// Plays a drill and says what did not hold.
pub(crate) async fn rig(args: &RigArgs) -> Result<(), Failure> {
    match &args.drill {
        Drill::Reads(args) => reads::drill(args).await,
        Drill::Kill(args) => kill::drill(args).await,
        Drill::Flood(args) => flood::drill(args).await,
        Drill::Fates(args) => fates::drill(args).await,
        Drill::Chaos(args) => chaos::drill(args).await,
        Drill::Rolling(args) => rolling::drill(args).await,
        Drill::Streams(args) => streams::drill(args).await,
    }
}

/// The seed that is given, or a new one.
fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| rand::rng().random_range(0..LONGEST_SEED))
}

fn interrupted() -> Failure {
    Failure::failed("the drill was interrupted; run it again with its seed")
}

/// Writes figures into the file that they are wanted in.
fn write_figures(file: Option<&Path>, figures: &Value) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
        Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
    })
}
