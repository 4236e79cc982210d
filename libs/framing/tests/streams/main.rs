//! Framing by its public API: each rule, streams cut into pieces, and comparison with hyper.
//!
//! `MESH_TEST_SEED` and `MESH_TEST_STREAMS` set another seed and another number of generated streams.

mod against_hyper;
mod compare;
mod generate;
mod hosts;
mod pieces;
mod record;
mod rules;

use std::{env, time::SystemTime};

/// The seed and the number of streams to generate.
fn run(streams: u64) -> (u64, u64) {
    let number = |variable: &str| env::var(variable).ok().and_then(|text| text.parse().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() << 24);
    (number("MESH_TEST_SEED").unwrap_or_else(now), number("MESH_TEST_STREAMS").unwrap_or(streams))
}
