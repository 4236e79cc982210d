//! The truth of the cache: whatever clients are told while blocks come, rows come late and services go and
//! return is what the store said at the height that the answer claims, and not long ago.
//!
//! `MESH_TRUTH_SECONDS` makes the recorded run longer than its usual few seconds, `MESH_TEST_SEED` repeats
//! one (times differ, what is written, asked and broken does not). The figures are printed: `-- --nocapture`.

#![allow(clippy::unwrap_used)] // in what the tests share

mod away;
mod check;
mod floor;
mod history;
mod reader;
mod stage;
mod trouble;
mod world;
mod writer;

use std::{
    env,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mesh_testbed::Database;

use crate::{reader::Reader, stage::Stage, trouble::Spells, writer::Writer};

/// How long the recorded run takes, unless it is set.
const USUALLY: Duration = Duration::from_secs(8);

/// Readers of each edge.
const READERS: u64 = 5;

/// Time to come to rest after the last trouble: the store's own return included.
const REST: Duration = Duration::from_secs(2);

fn seconds() -> Duration {
    let given = env::var("MESH_TRUTH_SECONDS").ok();
    given.map_or(USUALLY, |given| Duration::from_secs(given.parse().expect("MESH_TRUTH_SECONDS is a number")))
}

fn seed() -> u64 {
    let given = env::var("MESH_TEST_SEED").ok();
    let seed = given.map_or_else(rand::random, |given| given.parse().expect("MESH_TEST_SEED is a number"));
    println!("seed: {seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_what_the_store_said_at_its_height() {
    let seed = seed();
    let database = Database::fresh().await;
    let (writer, history) = Writer::begin(&database, seed).await;
    let mut stage = Stage::start(&database, 2, 2).await;
    let begun = Instant::now();
    let until = begun + seconds();
    let writing = tokio::spawn(writer.go_on(Arc::clone(&history), until + REST));
    let numbers = Arc::new(AtomicUsize::new(0));
    let mut reading = Vec::new();
    for (edge, played) in stage.edges.iter().enumerate() {
        for number in 0..READERS {
            let seed = seed.wrapping_add(number + 100 * edge as u64);
            let at = (edge, played.url.clone());
            let reader = Reader::new(Arc::clone(&history), at, seed, begun, Arc::clone(&numbers));
            reading.push(tokio::spawn(reader.read(until + REST)));
        }
    }
    let spells = Spells::default();
    trouble::make(&mut stage, &spells, seed, until).await;
    let read = join_all(reading).await;
    writing.await.expect("the writer does not panic");
    let reads: Vec<_> = read.into_iter().flat_map(|reads| reads.expect("a reader does not panic")).collect();

    let report = check::check(&history, &reads, &spells.all(), begun);
    let asked = usize::try_from(stage.asked().await).unwrap();
    println!("{} states, {} troubles: {report}", history.states().len(), spells.all().len());
    let shared = report.at_first_hand.saturating_sub(asked);
    let of_others = report.answers.saturating_sub(asked);
    println!(
        "{asked} reads of the services: {of_others} answers took none, at least {shared} of them shared one"
    );
    assert!(report.differences.is_empty(), "seed {seed}: {report}");
    assert!(report.unchanged > 0 && of_others > 0, "nothing was cached, nothing is shown: {report}");
}
