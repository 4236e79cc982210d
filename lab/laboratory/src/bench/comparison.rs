//! Compares sides - servers, chains of servers or programs - in alternating rounds, so that other load on the
//! machine affects all of them. Results are medians over the rounds of a side, and the cost in each process.

use futures_util::future::LocalBoxFuture;
use mesh::failure::Failure;

use super::{
    cost::MeasuredProcess,
    load::Load,
    meter::Round,
    section::{Figures, Line, median, quantile},
};

/// Number of rounds of each side.
pub(super) const ROUNDS: usize = 3;
/// Processor share of other processes, percent, above which a warning is printed.
const OTHERS_AT_MOST: f64 = 15.0;

/// What is counted in a round, and how rate and cost are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Heading of the rate.
    rate: &'static str,
    /// How many make one unit of the rate.
    per: f64,
    /// Heading of the cost.
    cost: &'static str,
    /// Converts microseconds for one of them to the cost.
    factor: f64,
    /// Whether the cost of a whole side includes that of its part in this process.
    includes_own: bool,
}

/// Requests, whose load is no part of a side's cost.
pub(super) const REQUESTS: Unit =
    Unit { rate: "requests/s", per: 1.0, cost: "CPU us/request", factor: 1.0, includes_own: false };
/// Bytes, in millions a second.
pub(super) const BYTES: Unit =
    Unit { rate: "MB/s", per: 1e6, cost: "CPU s/GB", factor: 1e3, includes_own: true };
pub(super) const ROWS: Unit =
    Unit { rate: "rows/s", per: 1.0, cost: "CPU us/row", factor: 1.0, includes_own: true };

pub(super) struct Side<'a> {
    name: String,
    unit: Unit,
    measure: Box<dyn Fn() -> LocalBoxFuture<'a, Result<Round, Failure>> + 'a>,
    rounds: Vec<Round>,
}

/// The cost of one process or part of a side, in the unit's measure.
struct Cost {
    part: String,
    cost: f64,
    is_own: bool,
}

impl<'a> Side<'a> {
    /// Creates a side with the measurement of a round.
    pub(super) fn new<F: Future<Output = Result<Round, Failure>> + 'a>(
        name: impl Into<String>,
        unit: Unit,
        measure: impl Fn() -> F + 'a,
    ) -> Self {
        Self { name: name.into(), unit, measure: Box::new(move || Box::pin(measure())), rounds: Vec::new() }
    }

    /// Creates a side whose measurement blocks a thread.
    pub(super) fn blocking(
        name: impl Into<String>,
        unit: Unit,
        measure: impl Fn() -> Result<Round, String> + Clone + Send + 'static,
    ) -> Self {
        let name = name.into();
        let side = name.clone();
        let measure = move || measure().map_err(|why| format!("{side}: {why}"));
        Self::new(name, unit, move || run_blocking(measure.clone()))
    }

    /// Creates a side whose processes answer the requests of a load.
    pub(super) fn load(name: impl Into<String>, load: Load, processes: Vec<MeasuredProcess>) -> Self {
        Self::blocking(name, REQUESTS, move || load.run(&processes))
    }

    /// Requests, bytes or rows a second, median over the rounds.
    pub(super) fn rate(&self) -> f64 {
        median(self.rounds.iter().map(Round::rate))
    }

    /// Median latency in milliseconds, median over the rounds.
    pub(super) fn p50_ms(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.quantile_ms(0.5)))
    }

    /// The cost of one request, byte or row in the whole side, in the unit's measure.
    pub(super) fn cost(&self) -> f64 {
        self.cost_without("")
    }

    /// The same without a process.
    pub(super) fn cost_without(&self, process: &str) -> f64 {
        let costs = self.costs();
        let counted = costs.iter().filter(|cost| cost.part != process);
        counted.filter(|cost| self.unit.includes_own || !cost.is_own).map(|cost| cost.cost).sum()
    }

    /// The costs of the watched processes and of the part in this process.
    fn costs(&self) -> Vec<Cost> {
        let amount: u64 = self.rounds.iter().map(|round| round.amount).sum();
        let each = |total: f64| total / amount.max(1) as f64 * self.unit.factor;
        // Processes may have been restarted between two rounds; their number and names stay the same.
        let Some(last) = self.rounds.last() else { return Vec::new() };
        let of_process = |(index, (process, _)): (usize, &(MeasuredProcess, f64))| {
            let total_us = self.rounds.iter().map(|round| round.spent.processes[index].1).sum();
            Cost { part: process.name.clone(), cost: each(total_us), is_own: false }
        };
        let mut costs: Vec<Cost> = last.spent.processes.iter().enumerate().map(of_process).collect();
        costs.extend(last.own.map(|(name, _)| {
            let total_us = self.rounds.iter().filter_map(|round| round.own).map(|(_, us)| us).sum();
            Cost { part: name.to_owned(), cost: each(total_us), is_own: true }
        }));
        costs
    }

    /// Processor share of unrelated processes, percent, median over the rounds.
    fn others_percent(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.spent.others_percent))
    }

    fn has_latencies(&self) -> bool {
        self.rounds.iter().all(|round| !round.took_ms.is_empty())
    }

    fn line(&self, with_latencies: bool) -> Line {
        let rates: Vec<f64> = self.rounds.iter().map(|round| round.rate() / self.unit.per).collect();
        let mut line = Line::new("side", &self.name)
            .value(self.unit.rate, median(rates.iter().copied()))
            .value("least", quantile(&rates, 0.0))
            .value("most", quantile(&rates, 1.0));
        if with_latencies {
            let p99_ms = median(self.rounds.iter().map(|round| round.quantile_ms(0.99)));
            line = line.value("p50 ms", self.p50_ms()).value("p99 ms", p99_ms);
        }
        line.value(self.unit.cost, self.cost()).value("others %", self.others_percent())
    }

    fn cost_lines(&self) -> impl Iterator<Item = Line> {
        self.costs().into_iter().map(|Cost { part, cost, .. }| {
            Line::new("process", format!("{}: {part}", self.name)).value(self.unit.cost, cost)
        })
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

/// The figures of a section with these sides, with the cost of each process below them. "others" are processes
/// unrelated to the benchmark: when they use much, rates and latencies are unreliable, and processor times
/// less so.
pub(super) fn figures(title: &str, sides: &[Side<'_>], found: Vec<f64>) -> Figures {
    let others = sides.iter().map(Side::others_percent).fold(0.0, f64::max);
    let mut note = String::new();
    if others > OTHERS_AT_MOST {
        note = format!(
            "other processes took up to {others:.0} % of the machine: measure again when it is quiet\n"
        );
    }
    let with_latencies = sides.iter().all(Side::has_latencies);
    let lines = sides.iter().map(|side| side.line(with_latencies)).collect();
    let processes = sides.iter().flat_map(Side::cost_lines).collect();
    Figures { title: format!("{title}, medians of {ROUNDS} rounds in turns"), lines, processes, note, found }
}

/// Runs a blocking measurement on its own thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Failure> {
    let ran = tokio::task::spawn_blocking(what).await;
    ran.map_err(|error| error.to_string()).flatten().map_err(Failure::failed)
}

/// Runs the clients of a round on the calling thread.
pub(super) fn block_on<T>(clients: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the clients: {error}"))?.block_on(clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{
        meter::{LOAD, Spent},
        section::Section,
        sections::Row,
    };

    /// A side with a process "edge" and a load, and rounds of a second: amount, latency of all requests, and
    /// processor time of the process.
    fn side(unit: Unit, rounds: [(u64, f64, f64); 3], load_us: f64) -> Side<'static> {
        let process = MeasuredProcess { name: "edge".into(), pid: std::process::id() };
        let round = |(amount, took_ms, cpu_us)| Round {
            amount,
            took_ms: if took_ms > 0.0 { vec![took_ms; 3] } else { Vec::new() },
            spent: Spent { seconds: 1.0, processes: vec![(process.clone(), cpu_us)], others_percent: 25.0 },
            own: Some((LOAD, load_us)),
        };
        let mut side = Side::new("mesh", unit, async || Ok(Round::default()));
        side.rounds = rounds.map(round).into();
        side
    }

    #[test]
    fn a_side_has_the_medians_of_its_rounds_and_the_cost_of_each_process() {
        let side_of_requests = side(REQUESTS, [(3, 1.0, 90.0), (9, 2.0, 0.0), (6, 4.0, 90.0)], 6.0);
        assert_eq!((side_of_requests.rate(), side_of_requests.p50_ms()), (6.0, 2.0));
        // The load is no part of the side.
        assert_eq!((side_of_requests.cost(), side_of_requests.cost_without("edge")), (10.0, 0.0));
        let row = Row { name: "name", about: "", bars: &[], measure: |_| Box::pin(async { panic!() }) };
        let text = Section::new(&row, Ok(figures("title", &[side_of_requests], Vec::new()))).table;
        for part in ["mesh: edge", "mesh: load", "p99 ms", "took up to 25 % of the machine"] {
            assert!(text.contains(part), "{text}");
        }
        let megabytes =
            [(100_000_000, 0.0, 100_000.0), (300_000_000, 0.0, 200_000.0), (200_000_000, 0.0, 300_000.0)];
        let side_of_bytes = side(BYTES, megabytes, 60_000.0);
        // 0.6 s for 0.6 GB, and 0.18 s of the load.
        assert!((side_of_bytes.cost() - 1.3).abs() < 1e-9);
        let text = Section::new(&row, Ok(figures("title", &[side_of_bytes], Vec::new()))).table;
        assert!(text.contains(" 200 ") && text.contains("1.300") && !text.contains("p99"), "{text}");
    }
}
