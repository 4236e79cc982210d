//! `mesh rig streams` and `mesh rig order`: simulations, seed after seed on all cores. The first seed that fails is
//! reported and reproduces the failure.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};

use mesh::{
    failure::{Failure, as_typed, cannot},
    signals,
    terminal::{print, print_line},
};
use mesh_simulator as simulator;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{
    args::PlayArgs,
    engine::{Drill, Play},
    interrupted, write_figures,
};

/// How often the worker threads are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Every seed is one stream with its own faults. No stream may deliver a wrong byte, end early as if complete, or hang.
pub(super) const STREAMS: Drill = Drill {
    name: "streams",
    about: "Simulates download streams under all faults, one run a seed",
    options: &[],
    play: Play::Seeds(simulate_stream),
};

/// Every seed is one chain that two replicas of `ingest` bring into a store under faults. The store must end with exactly
/// the chain, and no replica may be halted then.
pub(super) const ORDER: Drill = Drill {
    name: "order",
    about: "Simulates replicas of ingest that store a chain under faults, one run a seed",
    options: &[],
    play: Play::Seeds(simulate_order),
};

/// What happened in simulations, by name.
type Counts = Vec<(&'static str, u64)>;
/// Simulates one seed. All seeds count the same things.
pub(super) type Simulate = fn(u64) -> Result<Counts, simulator::Failure>;

fn simulate_stream(seed: u64) -> Result<Counts, simulator::Failure> {
    let outcome = simulator::simulate(seed)?;
    Ok(vec![
        ("whole", u64::from(outcome.is_whole)),
        // Visibly, and for a reason.
        ("broken", u64::from(!outcome.is_whole)),
        ("bytes", outcome.bytes),
        ("pulls", u64::from(outcome.pulls)),
        ("again", u64::from(outcome.again)),
    ])
}

fn simulate_order(seed: u64) -> Result<Counts, simulator::Failure> {
    Ok(simulator::simulate_order(seed)?.named().into())
}

/// Runs the seeds of a drill, prints the totals and writes them as JSON.
pub(super) async fn run(drill: &str, first: u64, args: &PlayArgs, simulate: Simulate) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let cores = available_parallelism().map_or(1, usize::from);
    print_line(&format!("{drill}: {} seeds from {first} on, on {cores} cores", args.runs));
    let begun = Instant::now();
    let Results { done, totals, failure } = tokio::select! {
        results = sweep(first, args.runs, simulate, cores) => results?,
        () = signals.stop() => return Err(interrupted()),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let a_second = (done as f64 / seconds.max(1e-9)).round();
    let listed: Vec<String> = totals.iter().map(|(name, count)| format!("{count} {name}")).collect();
    print(&format!(
        "{drill}: {done} seeds from {first} on in {seconds:.1} s, {a_second} a second\n  {}",
        listed.join(", ")
    ))?;
    let mut figures = json!({
        "drill": drill,
        "firstSeed": first,
        "seeds": done,
        "seconds": seconds,
        "seedsPerSecond": a_second,
        "failure": failure.as_ref().map(|failure| json!({ "seed": failure.seed, "what": failure.what })),
    });
    for (name, count) in totals {
        figures[name] = json!(count);
    }
    write_figures(args.json.as_deref(), &figures)?;
    match failure {
        None => Ok(()),
        Some(simulator::Failure { seed, what }) => Err(Failure::failed(as_typed(&format!(
            "seed {seed}: {what}; repeat it with `mesh rig {drill} --seed {seed} --runs 1`"
        )))),
    }
}

/// The seeds to run, and the results so far.
struct Sweep {
    simulate: Simulate,
    first: u64,
    runs: u64,
    begun: AtomicU64,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    done: u64,
    totals: Counts,
    /// The failure of the smallest seed.
    failure: Option<simulator::Failure>,
}

impl Sweep {
    /// Runs seeds until none is left or one has failed. Threads finish the seeds that they have started, so
    /// that the smallest failing seed is found independently of scheduling.
    fn work(&self) {
        while self.results.lock().failure.is_none() {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number >= self.runs {
                return;
            }
            let seed = self.first.wrapping_add(number);
            let outcome = catch_unwind(AssertUnwindSafe(|| (self.simulate)(seed))).unwrap_or_else(|_| {
                Err(simulator::Failure { seed, what: "the simulation panicked".to_owned() })
            });
            self.results.lock().add(outcome, self.first);
        }
    }
}

impl Results {
    fn add(&mut self, outcome: Result<Counts, simulator::Failure>, first: u64) {
        self.done += 1;
        match outcome {
            Ok(counts) if self.totals.is_empty() => self.totals = counts,
            Ok(counts) => {
                for ((_, total), (_, count)) in self.totals.iter_mut().zip(counts) {
                    *total += count;
                }
            }
            Err(failure) => {
                let number = |seed: u64| seed.wrapping_sub(first);
                if self.failure.as_ref().is_none_or(|before| number(failure.seed) < number(before.seed)) {
                    self.failure = Some(failure);
                }
            }
        }
    }
}

/// Runs seeds on all cores until none is left or one has failed. Both simulations limit the steps of a seed.
async fn sweep(first: u64, runs: u64, simulate: Simulate, cores: usize) -> Result<Results, Failure> {
    let (begun, results) = (AtomicU64::new(0), Mutex::default());
    let sweep = Arc::new(Sweep { simulate, first, runs, begun, results });
    let mut threads = Vec::new();
    for core in 0..cores {
        let sweep = Arc::clone(&sweep);
        let thread = std::thread::Builder::new().name(format!("seeds-{core}"));
        let thread = thread.spawn(move || sweep.work());
        threads.push(thread.map_err(|error| cannot("start to simulate", &error))?);
    }
    while threads.iter().any(|thread| !thread.is_finished()) {
        sleep(POLL_INTERVAL).await;
    }
    Ok(std::mem::take(&mut *sweep.results.lock()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_seed_is_run_once() {
        let Results { done, totals, failure } = sweep(u64::MAX - 10, 300, simulate_stream, 4).await.unwrap();
        let [(_, whole), (_, broken), _, (_, pulls), (_, again)] = totals[..] else { panic!("{totals:?}") };
        assert_eq!(failure, None);
        assert_eq!((done, whole + broken), (300, 300));
        assert!(whole > 100 && pulls > again, "{totals:?}");
    }

    #[tokio::test]
    async fn the_first_seed_that_fails_or_panics_is_found_and_ends_the_sweep() {
        let failing: Simulate = |seed| match seed {
            // The seeds after it finish sooner.
            1_005 => {
                std::thread::sleep(Duration::from_millis(50));
                Err(simulator::Failure { seed, what: "wrong bytes".to_owned() })
            }
            1_006.. => Err(simulator::Failure { seed, what: "later".to_owned() }),
            _ => simulate_stream(seed),
        };
        let Results { done, failure, .. } = sweep(1_000, 1_000_000, failing, 4).await.unwrap();
        assert_eq!(failure.map(|found| (found.seed, found.what)), Some((1_005, "wrong bytes".to_owned())));
        assert!(done < 100);
        let panics: Simulate = |seed| if seed == 5 { panic!("as planned") } else { simulate_stream(seed) };
        let failure = sweep(3, 10, panics, 4).await.unwrap().failure;
        assert_eq!(failure.map(|found| found.seed), Some(5));
    }
}
