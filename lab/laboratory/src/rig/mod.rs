//! `mesh rig`: long drills. A seed decides every random choice. A drill prints a table of figures and whether each bar
//! holds, and can write both as JSON.

pub(crate) mod args;
mod chaos;
pub(crate) mod clients;
mod engine;
mod fates;
mod faults;
mod flood;
mod ingest;
mod kill;
mod overload;
pub(crate) mod public;
mod read_requests;
mod reads;
mod report;
mod resource_usage;
mod rolling;
mod sweep;
mod traffic;
mod truth;
pub(crate) mod watching;
mod world;

use std::path::Path;

use mesh::failure::Failure;
use rand::Rng as _;
use serde_json::Value;

use self::engine::Drill;
pub(crate) use self::engine::run;

static DRILLS: [Drill; 11] = [
    reads::DRILL,
    kill::DRILL,
    flood::DRILL,
    overload::DRILL,
    fates::DRILL,
    rolling::DRILL,
    chaos::DRILL,
    truth::DRILL,
    ingest::DRILL,
    sweep::ORDER,
    sweep::STREAMS,
];

/// Upper bound of generated seeds, so that they are short to type.
const LONGEST_SEED: u64 = 1_000_000;

/// The given seed, or a random one.
fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| rand::rng().random_range(0..LONGEST_SEED))
}

fn interrupted() -> Failure {
    Failure::failed("the drill was interrupted; run it again with its seed")
}

/// Writes the figures as JSON into the file, if one is given.
pub(crate) fn write_figures(file: Option<&Path>, figures: &Value) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
        Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
    })
}
