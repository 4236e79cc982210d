//! Framing from outside: each rule by itself, any cutting into pieces, and hyper as a second reader.
//!
//! `MESH_TEST_SEED` and `MESH_TEST_STREAMS` choose another seed and another number of made streams.

mod against_hyper;
mod compare;
mod generate;
mod hosts;
mod pieces;
mod record;
mod rules;

use std::{env, time::SystemTime};

/// A seed and how many streams are to be made of it.
fn run(streams: u64) -> (u64, u64) {
    let number = |variable: &str| env::var(variable).ok().and_then(|text| text.parse().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() << 24);
    (number("MESH_TEST_SEED").unwrap_or_else(now), number("MESH_TEST_STREAMS").unwrap_or(streams))
}
