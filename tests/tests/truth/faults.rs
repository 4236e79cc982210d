//! Faults injected while clients read, each recorded with its beginning and end: a fault excuses refusals and
//! stale answers only in that time and shortly after.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use mesh_testbed::Signal;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use tokio::time::sleep;

use crate::environment::Environment;

/// Pause between two faults, milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 400..1400;

/// Length of a cut, milliseconds. Services consider the store unreachable after three seconds of silence.
const CUT_MS: std::ops::Range<u64> = 300..3000;
const STORE_CUT_MS: std::ops::Range<u64> = 500..4500;

/// How long a replica is frozen.
const FROZEN: Duration = Duration::from_secs(1);

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    StoreCut,
    StoreFrozen,
    BusCut { edge: usize },
    QueryRestart { replica: usize, is_graceful: bool },
    QueryFrozen { replica: usize },
    NodeInfoRestart { is_graceful: bool },
    EdgeRestart { edge: usize, is_graceful: bool },
}

/// A fault with its beginning and end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultWindow {
    pub(crate) fault: Fault,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// All faults of a run.
#[derive(Debug, Default)]
pub(crate) struct FaultLog(Mutex<Vec<FaultWindow>>);

impl FaultLog {
    /// All faults so far, in order of time.
    pub(crate) fn all(&self) -> Vec<FaultWindow> {
        self.0.lock().expect("nobody panics with it").clone()
    }

    fn record(&self, fault: Fault, from: Instant) {
        self.0.lock().expect("nobody panics with it").push(FaultWindow { fault, from, to: Instant::now() });
    }
}

/// Every fault once, in random order.
fn shuffled_faults(random: &mut SmallRng) -> Vec<Fault> {
    let (edge, replica) = (random.random_range(0..2), random.random_range(0..2));
    let mut faults =
        vec![Fault::StoreCut, Fault::StoreFrozen, Fault::BusCut { edge }, Fault::QueryFrozen { replica }];
    for is_graceful in [false, true] {
        faults.push(Fault::QueryRestart { replica, is_graceful });
        faults.push(Fault::NodeInfoRestart { is_graceful });
        faults.push(Fault::EdgeRestart { edge: 1 - edge, is_graceful });
    }
    faults.shuffle(random);
    faults
}

/// Injects faults until the given time, at least one; every fault is over when this returns.
pub(crate) async fn inject_faults(
    environment: &mut Environment,
    fault_log: &FaultLog,
    seed: u64,
    until: Instant,
) {
    let mut random = SmallRng::seed_from_u64(seed);
    loop {
        for fault in shuffled_faults(&mut random) {
            sleep(Duration::from_millis(random.random_range(PAUSE_MS))).await;
            let from = Instant::now();
            inject(environment, fault, &mut random).await;
            fault_log.record(fault, from);
            if Instant::now() >= until {
                return;
            }
        }
    }
}

async fn inject(environment: &mut Environment, fault: Fault, random: &mut SmallRng) {
    let cut = Duration::from_millis(random.random_range(CUT_MS));
    let store_cut = Duration::from_millis(random.random_range(STORE_CUT_MS));
    match fault {
        Fault::StoreCut => {
            environment.to_store.cut();
            sleep(store_cut).await;
            environment.to_store.restore();
        }
        Fault::StoreFrozen => {
            environment.to_store.stall();
            sleep(store_cut).await;
            environment.to_store.restore();
        }
        Fault::BusCut { edge } => {
            environment.edges[edge].to_bus.cut();
            sleep(cut).await;
            environment.edges[edge].to_bus.restore();
        }
        Fault::QueryFrozen { replica } => {
            environment.query[replica].service.signal(Signal::STOP);
            sleep(FROZEN).await;
            environment.query[replica].service.signal(Signal::CONT);
        }
        Fault::QueryRestart { replica, is_graceful } => environment.query[replica].restart(is_graceful).await,
        Fault::NodeInfoRestart { is_graceful } => environment.node_info.restart(is_graceful).await,
        Fault::EdgeRestart { edge, is_graceful } => environment.edges[edge].restart(is_graceful).await,
    }
}
