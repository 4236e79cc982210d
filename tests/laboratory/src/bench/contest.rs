//! Sides that are compared under the same load, round by round in turns, so that a busy moment of the machine
//! meets all of them.
//!
//! Comes in: where each side answers and what processes it is made of. Goes out: medians of its rounds, and
//! what a request cost each process.

use mesh::failure::Failure;
use serde_json::{Value, json};

use super::{
    cost::{self, Watched},
    load::{Load, Round},
};
use crate::table;

/// Rounds of each side.
pub(super) const ROUNDS: usize = 3;

/// Percent of the machine that others may take before the figures come with a warning.
const OTHERS_AT_MOST: f64 = 15.0;

/// One side.
pub(super) struct Side {
    /// What people call it.
    pub(super) name: &'static str,
    /// What it is asked.
    pub(super) load: Load,
    /// The processes that it is made of.
    pub(super) processes: Vec<Watched>,
}

/// What came of a side.
pub(super) struct Outcome {
    name: &'static str,
    rounds: Vec<Round>,
    spendings: Vec<Spending>,
}

/// What one process spent.
struct Spending {
    process: String,
    cpu_us: Option<f64>,
    peak_kib: Option<u64>,
}

/// Loads the sides in turns.
pub(super) async fn in_turns(sides: Vec<Side>) -> Result<Vec<Outcome>, Failure> {
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
        let spendings = spendings(&side.processes, &rounds);
        Outcome { name: side.name, rounds, spendings }
    };
    Ok(sides.into_iter().zip(rounds).map(outcome).collect())
}

fn spendings(processes: &[Watched], rounds: &[Round]) -> Vec<Spending> {
    let requests: usize = rounds.iter().map(|round| round.took_ns.len()).sum();
    let each = |of_round: &dyn Fn(&Round) -> Option<u64>| {
        let total = rounds.iter().map(of_round).sum::<Option<u64>>()?;
        Some(total as f64 / requests.max(1) as f64)
    };
    let of_process = |(place, process): (usize, &Watched)| Spending {
        process: process.name.clone(),
        cpu_us: each(&|round| round.cpu_us.as_ref()?.get(place).copied()),
        peak_kib: cost::peak_memory_kib(process.pid),
    };
    let of_load = Spending {
        process: "load".to_owned(),
        cpu_us: each(&|round| Some(round.load_cpu_us)),
        peak_kib: cost::peak_memory_kib(std::process::id()),
    };
    processes.iter().enumerate().map(of_process).chain([of_load]).collect()
}

impl Outcome {
    /// What people call the side.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Requests a second, the median of the rounds.
    pub(super) fn rate(&self) -> f64 {
        self.median(Round::rate)
    }

    /// The time of the median request in milliseconds, the median of the rounds.
    pub(super) fn p50_ms(&self) -> f64 {
        self.median(|round| round.quantile_ms(0.5))
    }

    fn p99_ms(&self) -> f64 {
        self.median(|round| round.quantile_ms(0.99))
    }

    fn median(&self, of_round: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of_round).collect())
    }

    /// Processor time of all its processes for one request, without the load.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        let own = self.spendings.split_last().map_or(&[][..], |(_load, own)| own);
        own.iter().map(|spending| spending.cpu_us).sum()
    }

    /// The share of the machine that went to others, percent, the median of the rounds.
    fn others_percent(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.rounds.iter().map(|round| round.others).collect();
        shares.map(|shares| 100.0 * median(shares))
    }

    /// The figures for a machine.
    pub(super) fn figures(&self) -> Value {
        let rates: Vec<f64> = self.rounds.iter().map(|round| round.rate().round()).collect();
        let processes = self.spendings.iter().map(|spending| {
            let cpu_us = spending.cpu_us.map(rounded);
            json!({ "process": spending.process, "cpuUsPerRequest": cpu_us, "peakKiB": spending.peak_kib })
        });
        json!({
            "side": self.name, "requestsPerSecond": self.rate().round(), "rounds": rates,
            "p50Ms": rounded(self.p50_ms()), "p99Ms": rounded(self.p99_ms()),
            "cpuUsPerRequest": self.cpu_us().map(rounded), "othersPercent": self.others_percent().map(rounded),
            "processes": processes.collect::<Vec<_>>(),
        })
    }
}

/// Lays the sides out, and below them what each process spent. "others" are processes that have nothing to do
/// with the benchmark: where they take much, times and rates say little, and processor times more.
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
    let sides = table::laid_out(title, &heading, &sides);
    let spent = outcomes.iter().flat_map(|side| {
        side.spendings.iter().map(|spending| {
            let peak = spending.peak_kib.map(|kib| kib as f64 / 1024.0);
            vec![format!("{}: {}", side.name, spending.process), figure(spending.cpu_us), figure(peak)]
        })
    });
    let heading = ["process", "CPU us/request", "peak MiB"];
    let spent: Vec<_> = spent.collect();
    let note = warning(outcomes.iter().filter_map(Outcome::others_percent).fold(0.0, f64::max));
    format!("{sides}{}{note}", table::laid_out("", &heading, &spent))
}

/// What to say when others took so many percent of the machine.
pub(super) fn warning(others: f64) -> String {
    match others > OTHERS_AT_MOST {
        true => format!(
            "other processes took up to {others:.0} % of the machine: measure again when it is quiet\n"
        ),
        false => String::new(),
    }
}

/// A figure that may be unknown.
pub(super) fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// The middle one of some values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Three digits behind the point are more than these figures are worth.
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
    fn a_side_is_told_by_the_medians_of_its_rounds() {
        let rounds = vec![round(&[1_000_000; 3], 90), round(&[2_000_000; 9], 0), round(&[4_000_000; 6], 90)];
        let processes = [Watched { name: "edge".into(), pid: std::process::id() }];
        let spendings = spendings(&processes, &rounds);
        let side = Outcome { name: "mesh", rounds, spendings };
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
