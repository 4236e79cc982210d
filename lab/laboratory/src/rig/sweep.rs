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

/// A seed takes about a millisecond: one that takes this long counts as hanging.
const HANGS_AFTER: Duration = Duration::from_secs(60);
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
///
/// # Errors
/// When a seed fails.
pub(super) async fn run(drill: &str, first: u64, args: &PlayArgs, simulate: Simulate) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let cores = available_parallelism().map_or(1, usize::from);
    print_line(&format!("{drill}: {} seeds from {first} on, on {cores} cores", args.runs));
    let begun = Instant::now();
    let sweep = Arc::new(Sweep::new(first, args.runs, simulate));
    let found = tokio::select! {
        found = watch(&sweep, cores) => found?,
        () = signals.stop() => return Err(interrupted()),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let totals = sweep.totals.lock().clone();
    let done = sweep.done.load(Ordering::Relaxed);
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
        "failure": found.as_ref().map(|found| json!({ "seed": found.seed, "what": found.what })),
    });
    for (name, count) in totals {
        figures[name] = json!(count);
    }
    write_figures(args.json.as_deref(), &figures)?;
    match found {
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
    /// Number of seeds started.
    begun: AtomicU64,
    /// Number of seeds finished.
    done: AtomicU64,
    totals: Mutex<Counts>,
    /// The failure of the smallest seed so far.
    found: Mutex<Option<simulator::Failure>>,
    /// By core: the seed in progress, and when it started.
    in_progress: Mutex<Vec<Option<(u64, Instant)>>>,
}

impl Sweep {
    fn new(first: u64, runs: u64, simulate: Simulate) -> Self {
        Self {
            simulate,
            first,
            runs,
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            totals: Mutex::default(),
            found: Mutex::default(),
            in_progress: Mutex::default(),
        }
    }

    /// Runs seeds until none is left or one has failed. Threads finish the seeds that they have started, so
    /// that the smallest failing seed is found independently of scheduling.
    fn work(&self, core: usize) {
        while self.found.lock().is_none() {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number >= self.runs {
                return;
            }
            let seed = self.first.wrapping_add(number);
            self.set_current(core, Some((seed, Instant::now())));
            let outcome = catch_unwind(AssertUnwindSafe(|| (self.simulate)(seed)));
            self.set_current(core, None);
            match outcome {
                Ok(Ok(counts)) => self.add(counts),
                Ok(Err(failure)) => self.record_failure(failure),
                Err(_) => self
                    .record_failure(simulator::Failure { seed, what: "the simulation panicked".to_owned() }),
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn add(&self, counts: Counts) {
        let mut totals = self.totals.lock();
        if totals.is_empty() {
            *totals = counts;
            return;
        }
        for ((_, total), (_, count)) in totals.iter_mut().zip(counts) {
            *total += count;
        }
    }

    fn set_current(&self, core: usize, seed: Option<(u64, Instant)>) {
        if let Some(in_progress) = self.in_progress.lock().get_mut(core) {
            *in_progress = seed;
        }
    }

    fn record_failure(&self, failure: simulator::Failure) {
        let mut found = self.found.lock();
        let number = |seed: u64| seed.wrapping_sub(self.first);
        if found.as_ref().is_none_or(|before| number(failure.seed) < number(before.seed)) {
            *found = Some(failure);
        }
    }
}

/// Runs the sweep on all cores until no seed is left, one has failed, or one hangs.
async fn watch(sweep: &Arc<Sweep>, cores: usize) -> Result<Option<simulator::Failure>, Failure> {
    sweep.in_progress.lock().resize(cores, None);
    let mut threads = Vec::new();
    for core in 0..cores {
        let sweep = Arc::clone(sweep);
        let thread = std::thread::Builder::new().name(format!("seeds-{core}"));
        let thread = thread.spawn(move || sweep.work(core));
        threads.push(thread.map_err(|error| cannot("start to simulate", &error))?);
    }
    while threads.iter().any(|thread| !thread.is_finished()) {
        sleep(POLL_INTERVAL).await;
        let hanging = sweep
            .in_progress
            .lock()
            .iter()
            .flatten()
            .find(|(_, since)| since.elapsed() > HANGS_AFTER)
            .copied();
        if let Some((seed, _)) = hanging {
            // Its thread ends with the process.
            sweep.record_failure(simulator::Failure { seed, what: format!("no end within {HANGS_AFTER:?}") });
            break;
        }
    }
    Ok(sweep.found.lock().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run_sweep(
        first: u64,
        runs: u64,
        simulate: Simulate,
    ) -> (Arc<Sweep>, Option<simulator::Failure>) {
        let sweep = Arc::new(Sweep::new(first, runs, simulate));
        let found = watch(&sweep, 4).await.unwrap();
        (sweep, found)
    }

    #[tokio::test]
    async fn every_seed_is_run_once() {
        let (sweep, found) = run_sweep(u64::MAX - 10, 300, simulate_stream).await;
        let totals = sweep.totals.lock().clone();
        let [(_, whole), (_, broken), _, (_, pulls), (_, again)] = totals[..] else { panic!("{totals:?}") };
        assert_eq!(found, None);
        assert_eq!((sweep.done.load(Ordering::Relaxed), whole + broken), (300, 300));
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
        let (sweep, found) = run_sweep(1_000, 1_000_000, failing).await;
        assert_eq!(found.map(|found| (found.seed, found.what)), Some((1_005, "wrong bytes".to_owned())));
        assert!(sweep.done.load(Ordering::Relaxed) < 100);
        let (_, found) =
            run_sweep(3, 10, |seed| if seed == 5 { panic!("as planned") } else { simulate_stream(seed) })
                .await;
        assert_eq!(found.map(|found| found.seed), Some(5));
    }
}
