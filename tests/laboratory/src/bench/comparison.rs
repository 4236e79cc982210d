//! Compares several servers under the same load in alternating rounds, so that other load on the machine
//! affects all of them.
//!
//! In: address and processes of each side. Out: medians over its rounds, and the cost of a request in each
//! process.

use mesh::failure::Failure;
use serde_json::{Value, json};

use super::{
    cost::{self, MeasuredProcess},
    load::{Load, Round},
};
use crate::table;

/// Number of rounds of each side.
pub(super) const ROUNDS: usize = 3;

/// Processor share of other processes, percent, above which a warning is printed.
const OTHERS_AT_MOST: f64 = 15.0;

/// One server or chain of servers that is compared.
pub(super) struct Side {
    /// Display name.
    pub(super) name: &'static str,
    /// The load on it.
    pub(super) load: Load,
    /// Its processes.
    pub(super) processes: Vec<MeasuredProcess>,
}

/// The results of a side.
pub(super) struct Outcome {
    name: &'static str,
    rounds: Vec<Round>,
    costs: Vec<ProcessCost>,
}

/// The cost of a request in one process.
struct ProcessCost {
    process: String,
    cpu_us: Option<f64>,
    peak_kib: Option<u64>,
}

/// Runs all rounds, the sides alternating.
pub(super) async fn run_rounds(sides: Vec<Side>) -> Result<Vec<Outcome>, Failure> {
    let mut rounds: Vec<Vec<Round>> = sides.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (side, rounds) in sides.iter().zip(&mut rounds) {
            let (load, processes) = (side.load.clone(), side.processes.clone());
            let ran = tokio::task::spawn_blocking(move || load.run(&processes)).await;
            let round = ran.map_err(|error| error.to_string()).and_then(|round| round);
            rounds
                .push(round.map_err(|why| Failure::failed(format!("{} did not answer: {why}", side.name)))?);
        }
    }
    let outcome = |(side, rounds): (Side, Vec<Round>)| {
        let costs = costs(&side.processes, &rounds);
        Outcome { name: side.name, rounds, costs }
    };
    Ok(sides.into_iter().zip(rounds).map(outcome).collect())
}

fn costs(processes: &[MeasuredProcess], rounds: &[Round]) -> Vec<ProcessCost> {
    let requests: usize = rounds.iter().map(|round| round.took_ns.len()).sum();
    let each = |of_round: &dyn Fn(&Round) -> Option<u64>| {
        let total = rounds.iter().map(of_round).sum::<Option<u64>>()?;
        Some(total as f64 / requests.max(1) as f64)
    };
    let of_process = |(index, process): (usize, &MeasuredProcess)| ProcessCost {
        process: process.name.clone(),
        cpu_us: each(&|round| round.cpu_us.as_ref()?.get(index).copied()),
        peak_kib: cost::peak_memory_kib(process.pid),
    };
    let of_load = ProcessCost {
        process: "load".to_owned(),
        cpu_us: each(&|round| Some(round.load_cpu_us)),
        peak_kib: cost::peak_memory_kib(std::process::id()),
    };
    processes.iter().enumerate().map(of_process).chain([of_load]).collect()
}

impl Outcome {
    /// Display name of the side.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Requests a second, median over the rounds.
    pub(super) fn rate(&self) -> f64 {
        self.median(Round::rate)
    }

    /// Median latency in milliseconds, median over the rounds.
    pub(super) fn p50_ms(&self) -> f64 {
        self.median(|round| round.quantile_ms(0.5))
    }

    fn p99_ms(&self) -> f64 {
        self.median(|round| round.quantile_ms(0.99))
    }

    fn median(&self, of_round: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of_round).collect())
    }

    /// Processor time of one request in all its processes, without the load generator, microseconds.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        let own = self.costs.split_last().map_or(&[][..], |(_load, own)| own);
        own.iter().map(|process_cost| process_cost.cpu_us).sum()
    }

    /// Processor share of unrelated processes, percent, median over the rounds.
    fn others_percent(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.rounds.iter().map(|round| round.others).collect();
        shares.map(|shares| 100.0 * median(shares))
    }

    /// The results as JSON.
    pub(super) fn figures(&self) -> Value {
        let rates: Vec<f64> = self.rounds.iter().map(|round| round.rate().round()).collect();
        let processes = self.costs.iter().map(|process_cost| {
            let cpu_us = process_cost.cpu_us.map(rounded);
            json!({ "process": process_cost.process, "cpuUsPerRequest": cpu_us, "peakKiB": process_cost.peak_kib })
        });
        json!({
            "side": self.name, "requestsPerSecond": self.rate().round(), "rounds": rates,
            "p50Ms": rounded(self.p50_ms()), "p99Ms": rounded(self.p99_ms()),
            "cpuUsPerRequest": self.cpu_us().map(rounded), "othersPercent": self.others_percent().map(rounded),
            "processes": processes.collect::<Vec<_>>(),
        })
    }
}

/// Renders the sides, and below them the cost of each process. "others" are processes unrelated to the
/// benchmark: when they use much, rates and latencies are unreliable, and processor times less so.
pub(super) fn tables(title: &str, outcomes: &[Outcome]) -> String {
    let sides: Vec<Vec<String>> = outcomes
        .iter()
        .map(|side| {
            let rates: Vec<f64> = side.rounds.iter().map(Round::rate).collect();
            vec![
                side.name.to_owned(),
                format!("{:.0}", side.rate()),
                format!("{:.0}", rates.iter().copied().fold(f64::INFINITY, f64::min)),
                format!("{:.0}", rates.iter().copied().fold(0.0, f64::max)),
                format!("{:.3}", side.p50_ms()),
                format!("{:.3}", side.p99_ms()),
                figure(side.cpu_us()),
                figure(side.others_percent()),
            ]
        })
        .collect();
    let heading = ["side", "requests/s", "least", "most", "p50 ms", "p99 ms", "CPU us/request", "others %"];
    let sides = table::render_table(title, &heading, &sides);
    let spent = outcomes.iter().flat_map(|side| {
        side.costs.iter().map(|process_cost| {
            let peak = process_cost.peak_kib.map(|kib| kib as f64 / 1024.0);
            vec![
                format!("{}: {}", side.name, process_cost.process),
                figure(process_cost.cpu_us),
                figure(peak),
            ]
        })
    });
    let heading = ["process", "CPU us/request", "peak MiB"];
    let spent: Vec<_> = spent.collect();
    let note = warning(outcomes.iter().filter_map(Outcome::others_percent).fold(0.0, f64::max));
    format!("{sides}{}{note}", table::render_table("", &heading, &spent))
}

/// The warning for this processor share of unrelated processes, percent; empty when it is small.
pub(super) fn warning(others: f64) -> String {
    match others > OTHERS_AT_MOST {
        true => format!(
            "other processes took up to {others:.0} % of the machine: measure again when it is quiet\n"
        ),
        false => String::new(),
    }
}

/// A figure with one decimal, or `-` when it is unknown.
pub(super) fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// The median of the values; NaN when there is none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Rounds to three decimals, more than the precision of the measurements.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(took_ns: &[u32], cpu_us: u64) -> Round {
        Round {
            took_ns: took_ns.to_vec(),
            seconds: 1.0,
            cpu_us: Some(vec![cpu_us]),
            load_cpu_us: 6,
            others: Some(0.25),
        }
    }

    #[test]
    fn a_side_shows_the_medians_of_its_rounds() {
        let rounds = vec![round(&[1_000_000; 3], 90), round(&[2_000_000; 9], 0), round(&[4_000_000; 6], 90)];
        let processes = [MeasuredProcess { name: "edge".into(), pid: std::process::id() }];
        let costs = costs(&processes, &rounds);
        let side = Outcome { name: "mesh", rounds, costs };
        let figures = side.figures();
        assert_eq!(figures["requestsPerSecond"], 6.0);
        assert_eq!(figures["p50Ms"], 2.0);
        assert_eq!(figures["cpuUsPerRequest"], 10.0);
        assert_eq!(figures["processes"][1]["cpuUsPerRequest"], 1.0);
        assert_eq!(figures["othersPercent"], 25.0);
        let text = tables("title", &[side]);
        assert!(text.contains("mesh: edge"), "{text}");
        assert!(text.contains("mesh: load"), "{text}");
        assert!(text.contains("took up to 25 % of the machine"), "{text}");
    }
}
