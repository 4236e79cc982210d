//! Compares sides - servers, chains of servers or programs - in alternating rounds, so that other load on the
//! machine affects all of them.
//!
//! In: how a round of each side is measured. Out: medians over its rounds, and the cost in each process.

use futures_util::future::LocalBoxFuture;
use mesh::failure::Failure;
use serde_json::json;

use super::{
    cost::{self, MeasuredProcess},
    load::Load,
    meter::{LOAD, Round},
    section::{Line, Section, decimal, median, median_if_known, quantile, rounded},
    sections::SectionName,
};

/// Number of rounds of each side.
pub(super) const ROUNDS: usize = 3;
/// Processor share of other processes, percent, above which a warning is printed.
const OTHERS_AT_MOST: f64 = 15.0;

/// What is counted in a round, and how rate and cost are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Heading and key of the rate.
    rate: (&'static str, &'static str),
    /// How many make one unit of the rate.
    per: f64,
    /// Decimals of the rate in the table.
    rate_decimals: usize,
    /// Heading and key of the cost.
    cost: (&'static str, &'static str),
    /// Converts microseconds for one of them to the cost.
    factor: f64,
    /// Decimals of the cost in the table.
    cost_decimals: usize,
    /// Heading of the cost of a whole side.
    total: &'static str,
    /// Whether the cost of a whole side includes that of its parts in this process.
    includes_own: bool,
}

/// Requests, whose load is no part of a side's cost.
pub(super) const REQUESTS: Unit = Unit {
    rate: ("requests/s", "requestsPerSecond"),
    per: 1.0,
    rate_decimals: 0,
    cost: ("CPU us/request", "cpuUsPerRequest"),
    factor: 1.0,
    cost_decimals: 1,
    total: "CPU us/request",
    includes_own: false,
};
/// Bytes, in millions a second.
pub(super) const BYTES: Unit = Unit {
    rate: ("MB/s", "rate"),
    per: 1e6,
    rate_decimals: 1,
    cost: ("CPU s/GB", "cost"),
    factor: 1e3,
    cost_decimals: 3,
    total: "all CPU s/GB",
    includes_own: true,
};
/// Rows.
pub(super) const ROWS: Unit = Unit {
    rate: ("rows/s", "rate"),
    per: 1.0,
    cost: ("CPU us/row", "cost"),
    factor: 1.0,
    total: "all CPU us/row",
    ..BYTES
};

/// One of the sides that are compared.
pub(super) struct Side<'a> {
    name: &'static str,
    unit: Unit,
    measure: Box<dyn Fn() -> LocalBoxFuture<'a, Result<Round, Failure>> + 'a>,
    rounds: Vec<Round>,
}

/// The cost of one process or part of a side, in the unit's measure, with its peak memory.
struct Cost {
    process: String,
    cost: Option<f64>,
    peak_kib: Option<u64>,
}

impl<'a> Side<'a> {
    /// Creates a side with the measurement of a round.
    pub(super) fn new<F: Future<Output = Result<Round, Failure>> + 'a>(
        name: &'static str,
        unit: Unit,
        measure: impl Fn() -> F + 'a,
    ) -> Self {
        Self { name, unit, measure: Box::new(move || Box::pin(measure())), rounds: Vec::new() }
    }

    /// Creates a side whose measurement blocks a thread.
    pub(super) fn blocking(
        name: &'static str,
        unit: Unit,
        measure: impl Fn() -> Result<Round, String> + Clone + Send + 'static,
    ) -> Self {
        Self::new(name, unit, move || run_blocking(measure.clone()))
    }

    /// Creates a side whose processes answer the requests of a load.
    pub(super) fn load(name: &'static str, load: Load, processes: Vec<MeasuredProcess>) -> Self {
        let measure = move || load.run(&processes).map_err(|why| format!("{name} did not answer: {why}"));
        Self::blocking(name, REQUESTS, measure)
    }

    /// Display name of the side.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Requests, bytes or rows a second, median over the rounds.
    pub(super) fn rate(&self) -> f64 {
        median(self.rounds.iter().map(Round::rate))
    }

    /// Median latency in milliseconds, median over the rounds.
    pub(super) fn p50_ms(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.quantile_ms(0.5)))
    }

    /// The ratio of two rates as the figure of a bar.
    pub(super) fn rate_to(&self, other: &Self, counted: &str) -> (String, f64) {
        (format!("{} / {}, {counted} a second", self.name, other.name), self.rate() / other.rate())
    }

    /// The difference of two median latencies as the figure of a bar.
    pub(super) fn delay_to(&self, other: &Self, counted: &str) -> (String, f64) {
        let what = format!("{} - {}, ms of the median {counted}", self.name, other.name);
        (what, self.p50_ms() - other.p50_ms())
    }

    /// The cost of one request, byte or row in the whole side, in the unit's measure.
    pub(super) fn cost(&self) -> Option<f64> {
        let (processes, own) = self.costs();
        processes.iter().chain(own.iter().filter(|_| self.unit.includes_own)).map(|cost| cost.cost).sum()
    }

    /// The costs of the watched processes and of the parts in this process.
    fn costs(&self) -> (Vec<Cost>, Vec<Cost>) {
        let amount: u64 = self.rounds.iter().map(|round| round.amount).sum();
        let each = |total: u64| total as f64 / amount.max(1) as f64 * self.unit.factor;
        // Processes may have been restarted between two rounds; their number and names stay the same.
        let Some(last) = self.rounds.last() else { return (Vec::new(), Vec::new()) };
        let of_process = |(index, process): (usize, &MeasuredProcess)| {
            let of_round = |round: &Round| round.spent.cpu_us.as_ref()?.get(index).copied();
            let total: Option<u64> = self.rounds.iter().map(of_round).sum();
            let peak_kib = cost::peak_memory_kib(process.pid);
            Cost { process: process.name.clone(), cost: total.map(each), peak_kib }
        };
        let of_own = |(name, _): &(&'static str, u64)| {
            let own = self.rounds.iter().flat_map(|round| &round.own_us).filter(|(other, _)| other == name);
            let cost = Some(each(own.map(|(_, us)| us).sum()));
            let peak_kib = if *name == LOAD { cost::peak_memory_kib(std::process::id()) } else { None };
            Cost { process: (*name).to_owned(), cost, peak_kib }
        };
        let processes = last.spent.watched.iter().enumerate().map(of_process).collect();
        (processes, last.own_us.iter().map(of_own).collect())
    }

    /// Processor share of unrelated processes, percent, median over the rounds.
    fn others_percent(&self) -> Option<f64> {
        Some(100.0 * median_if_known(self.rounds.iter().map(|round| round.spent.others))?)
    }

    /// Whether the latency of each request is known.
    fn has_latencies(&self) -> bool {
        self.rounds.iter().all(|round| !round.took_ms.is_empty())
    }

    fn line(&self, with_latencies: bool) -> Line {
        let Unit { rate, per, rate_decimals, cost, cost_decimals, total, .. } = self.unit;
        let rates: Vec<f64> = self.rounds.iter().map(|round| round.rate() / per).collect();
        let (least, most) = (quantile(&rates, 0.0), quantile(&rates, 1.0));
        let mut line = Line::new("side", self.name)
            .value(rate, rate_decimals, self.rate() / per)
            .cell("least", decimal(Some(least), rate_decimals))
            .cell("most", decimal(Some(most), rate_decimals))
            .figure("rounds", rates.into_iter().map(rounded).collect::<Vec<_>>())
            .figure("rateUnit", rate.0)
            .figure("costUnit", cost.0);
        if with_latencies {
            let p99_ms = median(self.rounds.iter().map(|round| round.quantile_ms(0.99)));
            line = line.value(("p50 ms", "p50Ms"), 3, self.p50_ms()).value(("p99 ms", "p99Ms"), 3, p99_ms);
        }
        let (processes, own) = self.costs();
        let costs = processes.iter().chain(&own).map(|part| {
            json!({ "process": part.process, cost.1: part.cost.map(rounded), "peakKiB": part.peak_kib })
        });
        line.value((total, cost.1), cost_decimals, self.cost())
            .value(("others %", "othersPercent"), 1, self.others_percent())
            .figure("processes", costs.collect::<Vec<_>>())
    }

    /// A line for each process and part.
    fn cost_lines(&self) -> Vec<Line> {
        let (processes, own) = self.costs();
        let line = |part: &Cost| {
            let peak_mib = part.peak_kib.map(|kib| kib as f64 / 1024.0);
            Line::new("process", &format!("{}: {}", self.name, part.process))
                .cell(self.unit.cost.0, decimal(part.cost, self.unit.cost_decimals))
                .cell("peak MiB", decimal(peak_mib, 1))
        };
        processes.iter().chain(&own).map(line).collect()
    }
}

/// Measures all rounds, the sides alternating.
pub(super) async fn run_rounds<const N: usize>(mut sides: [Side<'_>; N]) -> Result<[Side<'_>; N], Failure> {
    for _ in 0..ROUNDS {
        for side in &mut sides {
            let round = (side.measure)().await?;
            side.rounds.push(round);
        }
    }
    Ok(sides)
}

/// Creates a section from sides, with the cost of each process below them. "others" are processes unrelated
/// to the benchmark: when they use much, rates and latencies are unreliable, and processor times less so.
pub(super) fn section(
    name: SectionName,
    title: &str,
    sides: &[Side<'_>],
    found: &[(String, f64)],
) -> Section {
    let title = format!("{name}: {title}, medians of {ROUNDS} rounds in turns");
    let costs: Vec<Line> = sides.iter().flat_map(Side::cost_lines).collect();
    let others = sides.iter().filter_map(Side::others_percent).fold(0.0, f64::max);
    let warning = match others > OTHERS_AT_MOST {
        true => format!(
            "other processes took up to {others:.0} % of the machine: measure again when it is quiet\n"
        ),
        false => String::new(),
    };
    let with_latencies = sides.iter().all(Side::has_latencies);
    let lines: Vec<Line> = sides.iter().map(|side| side.line(with_latencies)).collect();
    Section::new(name, &title, &lines, &format!("{}{warning}", Line::table("", &costs)), found)
}

/// Runs a blocking measurement on its own thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Failure> {
    let ran = tokio::task::spawn_blocking(what).await;
    ran.map_err(|error| error.to_string()).flatten().map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::meter::Spent;

    /// A side with a process "edge" and a load, and rounds of a second: amount, latency of all requests, and
    /// processor time of the process.
    fn side(unit: Unit, rounds: [(u64, f64, u64); 3], load_us: u64) -> Side<'static> {
        let watched = vec![MeasuredProcess { name: "edge".into(), pid: std::process::id() }];
        let round = |(amount, took_ms, cpu_us)| Round {
            amount,
            took_ms: if took_ms > 0.0 { vec![took_ms; 3] } else { Vec::new() },
            spent: Spent {
                seconds: 1.0,
                watched: watched.clone(),
                cpu_us: Some(vec![cpu_us]),
                others: Some(0.25),
            },
            own_us: vec![(LOAD, load_us)],
        };
        let mut side = Side::new("mesh", unit, async || Ok(Round::default()));
        side.rounds = rounds.map(round).into();
        side
    }

    fn shown(side: Side<'static>) -> (serde_json::Value, String) {
        let mut section = section(SectionName::Beside, "title", &[side], &[]);
        (section.figures["sides"][0].take(), section.table)
    }

    #[test]
    fn a_side_shows_the_medians_of_its_rounds_and_the_cost_of_each_process() {
        let (figures, text) = shown(side(REQUESTS, [(3, 1.0, 90), (9, 2.0, 0), (6, 4.0, 90)], 6));
        assert_eq!((&figures["requestsPerSecond"], &figures["p50Ms"]), (&json!(6.0), &json!(2.0)));
        // The load is no part of the side.
        assert_eq!(figures["cpuUsPerRequest"], 10.0);
        assert_eq!(figures["processes"][1]["cpuUsPerRequest"], 1.0);
        assert_eq!(figures["othersPercent"], 25.0);
        for part in ["mesh: edge", "mesh: load", "p99 ms", "took up to 25 % of the machine"] {
            assert!(text.contains(part), "{text}");
        }
        let megabytes =
            [(100_000_000, 0.0, 100_000), (300_000_000, 0.0, 200_000), (200_000_000, 0.0, 300_000)];
        let (figures, text) = shown(side(BYTES, megabytes, 60_000));
        // 0.6 s for 0.6 GB, and 0.18 s of the load.
        assert_eq!((&figures["rate"], &figures["rateUnit"]), (&json!(200.0), &json!("MB/s")));
        assert_eq!((&figures["cost"], &figures["processes"][1]["cost"]), (&json!(1.3), &json!(0.3)));
        assert!(text.contains("1.300") && !text.contains("p99"), "{text}");
    }
}
