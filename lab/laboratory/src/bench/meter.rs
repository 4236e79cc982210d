//! Measures the processor time of processes between two moments, and the share of the machine that others
//! use.

use std::time::Instant;

use super::{
    cost::{self, MeasuredProcess},
    section::{Line, quantile},
};

/// Name of the load that this process generates, among the parts of a side.
pub(super) const LOAD: &str = "load";

/// A running measurement.
pub(super) struct Meter {
    begun: Instant,
    watched: Vec<MeasuredProcess>,
    machine_us: [f64; 2],
    processes_us: Vec<f64>,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    /// Length of the measurement, seconds.
    pub(super) seconds: f64,
    /// The watched processes, each with its processor time, microseconds.
    pub(super) processes: Vec<(MeasuredProcess, f64)>,
    /// The share of the machine's processor time that went to others than the load and the watched
    /// processes, percent.
    pub(super) others_percent: f64,
}

impl Meter {
    pub(super) fn start(watched: &[MeasuredProcess]) -> Self {
        let (machine_us, processes_us) = (cost::machine_us(), cost::cpu_us(watched));
        Self { begun: Instant::now(), watched: watched.to_vec(), machine_us, processes_us }
    }

    /// Ends the measurement; `own_us` is the processor time of the load meanwhile, microseconds.
    pub(super) fn stop(self, own_us: f64) -> Spent {
        let seconds = self.begun.elapsed().as_secs_f64();
        let now_us = cost::cpu_us(&self.watched);
        let spent_us = now_us.iter().zip(&self.processes_us).map(|(now, before)| now - before);
        let processes: Vec<_> = self.watched.into_iter().zip(spent_us).collect();
        let ([used_us, all_us], [used_before_us, all_before_us]) = (cost::machine_us(), self.machine_us);
        let known_us = own_us + processes.iter().map(|(_, us)| us).sum::<f64>();
        let others = (used_us - used_before_us - known_us) / (all_us - all_before_us).max(1.0);
        // Not `f64::max`, which would return 0 instead of NaN.
        let others_percent = if others < 0.0 { 0.0 } else { 100.0 * others };
        Spent { seconds, processes, others_percent }
    }
}

impl Spent {
    /// Processor time of the processes with this name, or of all of them, milliseconds a second.
    pub(super) fn ms_a_second(&self, name: Option<&str>) -> f64 {
        let counted =
            self.processes.iter().filter(|(process, _)| name.is_none_or(|name| process.name == name));
        counted.map(|(_, us)| us).sum::<f64>() / 1e3 / self.seconds
    }

    /// A line for each process with its processor time.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> {
        self.processes.iter().map(|(process, us)| {
            let ms = us / 1e3 / self.seconds;
            Line::new("process", &process.name).value("CPU ms/s", ms)
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Number of requests, bytes or rows.
    pub(super) amount: u64,
    /// Latencies of the requests, milliseconds; empty where there are none.
    pub(super) took_ms: Vec<f64>,
    /// Processor time of the watched processes.
    pub(super) spent: Spent,
    /// What runs in this process or has ended: its name and processor time, microseconds.
    pub(super) own: Option<(&'static str, f64)>,
}

impl Round {
    /// Measures work of this process or of programs that it starts, whose result is the number of requests,
    /// bytes or rows. `clock`: the processor time of those who work.
    pub(super) fn of(
        (name, clock): (&'static str, fn() -> f64),
        watched: &[MeasuredProcess],
        work: impl FnOnce() -> Result<u64, String>,
    ) -> Result<Self, String> {
        let (meter, before_us) = (Meter::start(watched), clock());
        let amount = work()?;
        let own_us = clock() - before_us;
        Ok(Self { amount, spent: meter.stop(own_us), own: Some((name, own_us)), ..Self::default() })
    }

    /// Requests, bytes or rows a second.
    pub(super) fn rate(&self) -> f64 {
        self.amount as f64 / self.spent.seconds
    }

    /// The quantile of the latencies for a share between 0 and 1, milliseconds.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        quantile(&self.took_ms, share)
    }
}
