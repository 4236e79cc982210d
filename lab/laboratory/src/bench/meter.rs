//! Measures the processor time of processes between two moments, and the share of the machine that others
//! use.

use std::time::Instant;

use super::{
    cost::{self, MeasuredProcess},
    section::quantile,
};

/// Name of the load that this process generates, among the parts of a side.
pub(super) const LOAD: &str = "load";

/// A running measurement.
pub(super) struct Meter {
    begun: Instant,
    watched: Vec<MeasuredProcess>,
    machine_us: Option<(u64, u64)>,
    processes_us: Option<Vec<u64>>,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    /// Length of the measurement, seconds.
    pub(super) seconds: f64,
    /// The watched processes.
    pub(super) watched: Vec<MeasuredProcess>,
    /// Processor time of each watched process, microseconds.
    pub(super) cpu_us: Option<Vec<u64>>,
    /// The share of the machine's processor time that went to others than the load and the watched
    /// processes.
    pub(super) others: Option<f64>,
}

impl Meter {
    /// Starts a measurement.
    pub(super) fn start(watched: &[MeasuredProcess]) -> Self {
        let (machine_us, processes_us) = (cost::machine_cpu_us(), cost::cpu_us(watched));
        Self { begun: Instant::now(), watched: watched.to_vec(), machine_us, processes_us }
    }

    /// Ends the measurement; `load_us` is the processor time of the load meanwhile, microseconds.
    pub(super) fn stop(self, load_us: u64) -> Spent {
        let seconds = self.begun.elapsed().as_secs_f64();
        let processes = self.processes_us.zip(cost::cpu_us(&self.watched));
        let spent = |(before, after): (&u64, &u64)| after.saturating_sub(*before);
        let cpu_us: Option<Vec<u64>> =
            processes.map(|(before, after)| before.iter().zip(&after).map(spent).collect());
        let machine = self.machine_us.zip(cost::machine_cpu_us());
        let others = machine.zip(cpu_us.as_ref()).map(|((before, after), own)| {
            let used = (after.0 - before.0) as f64;
            let own = (own.iter().sum::<u64>() + load_us) as f64;
            (used - own).max(0.0) / (after.1 - before.1).max(1) as f64
        });
        Spent { seconds, watched: self.watched, cpu_us, others }
    }
}

/// The results of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Number of requests, bytes or rows.
    pub(super) amount: u64,
    /// Latencies of the requests, milliseconds; empty where there are none.
    pub(super) took_ms: Vec<f64>,
    /// Processor time of the watched processes.
    pub(super) spent: Spent,
    /// Processor time of the parts that run in this process or have ended, by name, microseconds.
    pub(super) own_us: Vec<(&'static str, u64)>,
}

impl Round {
    /// Requests, bytes or rows a second.
    pub(super) fn rate(&self) -> f64 {
        self.amount as f64 / self.spent.seconds
    }

    /// The quantile of the latencies for a share between 0 and 1, milliseconds.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        quantile(&self.took_ms, share)
    }
}
