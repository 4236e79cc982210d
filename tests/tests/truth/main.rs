//! Consistency of the edge's cache: while blocks and late rows are written and services fail and return,
//! every answer equals the store's content at the height that the answer names, and is at most a second old
//! (ten seconds during a store outage).
//!
//! `MESH_TRUTH_SECONDS` makes the recorded run longer than its usual few seconds, `MESH_TEST_SEED` repeats
//! one (times differ; rows, requests and faults do not). `-- --nocapture` shows the figures.

#![allow(clippy::unwrap_used)] // also in functions outside `#[test]`

mod check;
mod environment;
mod faults;
mod height_order;
mod history;
mod reader;
mod store_outage;
mod world;
mod writer;

use std::{
    env,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mesh_testbed::Database;

use crate::{environment::Environment, faults::FaultLog, reader::Reader, writer::Writer};

/// Length of the recorded run when `MESH_TRUTH_SECONDS` is not set.
const DEFAULT_LENGTH: Duration = Duration::from_secs(8);

/// Number of readers for each edge.
const READERS: u64 = 5;

/// How long readers and the writer go on after the last fault, so that its recovery is recorded too.
const RECOVERY: Duration = Duration::from_secs(2);

fn run_length() -> Duration {
    let given = env::var("MESH_TRUTH_SECONDS").ok();
    given.map_or(DEFAULT_LENGTH, |given| {
        Duration::from_secs(given.parse().expect("MESH_TRUTH_SECONDS is a number"))
    })
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
    let (writer, history) = Writer::start(&database, seed).await;
    let mut environment = Environment::start(&database, 2, 2).await;
    let begun = Instant::now();
    let until = begun + run_length();
    let writing = tokio::spawn(writer.run(Arc::clone(&history), until + RECOVERY));
    let connection_count = Arc::new(AtomicUsize::new(0));
    let mut reading = Vec::new();
    for (edge, process) in environment.edges.iter().enumerate() {
        for number in 0..READERS {
            let seed = seed.wrapping_add(number + 100 * edge as u64);
            let at = (edge, process.url.clone());
            let reader = Reader::new(Arc::clone(&history), at, seed, begun, Arc::clone(&connection_count));
            reading.push(tokio::spawn(reader.read(until + RECOVERY)));
        }
    }
    let fault_log = FaultLog::default();
    faults::inject_faults(&mut environment, &fault_log, seed, until).await;
    let read = join_all(reading).await;
    writing.await.expect("the writer does not panic");
    let reads: Vec<_> = read.into_iter().flat_map(|reads| reads.expect("a reader does not panic")).collect();

    let report = check::check(&history, &reads, &fault_log.all(), begun);
    let service_reads = usize::try_from(environment.answered_reads().await).unwrap();
    println!("{} states, {} troubles: {report}", history.states().len(), fault_log.all().len());
    let shared = report.uncached.saturating_sub(service_reads);
    let cached_or_shared = report.answers.saturating_sub(service_reads);
    println!(
        "{service_reads} reads of the services: {cached_or_shared} answers took none, at least {shared} of them \
         shared one"
    );
    assert!(report.differences.is_empty(), "seed {seed}: {report}");
    assert!(report.unchanged > 0 && cached_or_shared > 0, "nothing was cached, nothing is shown: {report}");
}
