//! Throughput of sides that transfer bytes or rows, and the cost in each process.
//!
//! In: rounds of each side, which the caller runs alternating. Out: medians, as a table and as JSON.

use serde_json::{Value, json};

use super::{
    comparison::{self, figure, median, rounded},
    cost::{self, MeasuredProcess},
    meter::Spent,
};
use crate::table;

/// The unit of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Name of the rate.
    rate: &'static str,
    /// Bytes or rows in one unit of the rate.
    per: f64,
    /// Name of the cost.
    cost: &'static str,
    /// Converts microseconds per byte or row to the cost.
    factor: f64,
}

/// Bytes, in millions a second.
pub(super) const BYTES: Unit = Unit { rate: "MB/s", per: 1e6, cost: "CPU s/GB", factor: 1e3 };
/// Rows.
pub(super) const ROWS: Unit = Unit { rate: "rows/s", per: 1.0, cost: "CPU us/row", factor: 1.0 };

/// The results of a round.
#[derive(Clone, Debug)]
pub(super) struct TransferRound {
    /// Number of bytes or rows.
    pub(super) amount: u64,
    /// Processor time of the measured processes.
    pub(super) spent: Spent,
    /// Processor time of parts that run in this process, by name, microseconds.
    pub(super) own_us: Vec<(&'static str, u64)>,
}

/// One side and its rounds.
pub(super) struct Transfer {
    name: &'static str,
    unit: Unit,
    processes: Vec<MeasuredProcess>,
    rounds: Vec<TransferRound>,
}

impl TransferRound {
    fn rate(&self) -> f64 {
        self.amount as f64 / self.spent.seconds
    }
}

impl Transfer {
    /// Creates a side with its processes.
    pub(super) fn new(name: &'static str, unit: Unit, processes: Vec<MeasuredProcess>) -> Self {
        Self { name, unit, processes, rounds: Vec::new() }
    }

    /// Its processes.
    pub(super) fn processes(&self) -> &[MeasuredProcess] {
        &self.processes
    }

    /// Replaces the processes after some were restarted; their names must stay the same.
    pub(super) fn watch(&mut self, processes: Vec<MeasuredProcess>) {
        self.processes = processes;
    }

    /// Adds a round.
    pub(super) fn add(&mut self, round: TransferRound) {
        self.rounds.push(round);
    }

    /// Display name of the side.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes or rows a second, median over the rounds.
    pub(super) fn rate(&self) -> f64 {
        median(self.rounds.iter().map(TransferRound::rate).collect())
    }

    /// Cost of each process in the unit's measure, with its peak memory in KiB.
    fn costs(&self) -> Vec<(String, Option<f64>, Option<u64>)> {
        let amount: u64 = self.rounds.iter().map(|round| round.amount).sum();
        let each = |total: u64| total as f64 / amount.max(1) as f64 * self.unit.factor;
        let of_process = |(index, process): (usize, &MeasuredProcess)| {
            let of_round = |round: &TransferRound| round.spent.cpu_us.as_ref()?.get(index).copied();
            let total = self.rounds.iter().map(of_round).sum::<Option<u64>>();
            (process.name.clone(), total.map(each), cost::peak_memory_kib(process.pid))
        };
        let names = self.rounds.first().map(|round| round.own_us.as_slice()).unwrap_or_default();
        let of_own = |(name, _): &(&'static str, u64)| {
            let own = self.rounds.iter().flat_map(|round| &round.own_us).filter(|(other, _)| other == name);
            ((*name).to_owned(), Some(each(own.map(|(_, us)| us).sum())), None)
        };
        self.processes.iter().enumerate().map(of_process).chain(names.iter().map(of_own)).collect()
    }

    /// Processor share of unrelated processes, percent, median over the rounds.
    fn others_percent(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.rounds.iter().map(|round| round.spent.others).collect();
        shares.map(|shares| 100.0 * median(shares))
    }

    /// The results as JSON.
    pub(super) fn figures(&self) -> Value {
        let rates: Vec<f64> = self.rounds.iter().map(|round| rounded(round.rate() / self.unit.per)).collect();
        let costs = self.costs().into_iter().map(|(process, cost, peak_kib)| {
            json!({ "process": process, "cost": cost.map(rounded), "peakKiB": peak_kib })
        });
        json!({
            "side": self.name, "rate": rounded(self.rate() / self.unit.per), "rateUnit": self.unit.rate,
            "costUnit": self.unit.cost, "rounds": rates, "othersPercent": self.others_percent().map(rounded),
            "processes": costs.collect::<Vec<_>>(),
        })
    }
}

/// Renders sides of one unit, and below them the cost of each process.
pub(super) fn tables(title: &str, sides: &[Transfer]) -> String {
    let Some(unit) = sides.first().map(|side| side.unit) else { return String::new() };
    let title = format!("{title}, medians of {} rounds in turns", comparison::ROUNDS);
    let (mut rows, mut spent) = (Vec::new(), Vec::new());
    for side in sides {
        let rates: Vec<f64> = side.rounds.iter().map(|round| round.rate() / unit.per).collect();
        let costs = side.costs();
        let total: Option<f64> = costs.iter().map(|(_, cost, _)| *cost).sum();
        rows.push(vec![
            side.name.to_owned(),
            format!("{:.1}", side.rate() / unit.per),
            format!("{:.1}", rates.iter().copied().fold(f64::INFINITY, f64::min)),
            format!("{:.1}", rates.iter().copied().fold(0.0, f64::max)),
            total.map_or_else(|| "-".to_owned(), |total| format!("{total:.3}")),
            figure(side.others_percent()),
        ]);
        for (process, cost, peak_kib) in costs {
            let cost = cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.3}"));
            let peak = peak_kib.map(|kib| kib as f64 / 1024.0);
            spent.push(vec![format!("{}: {process}", side.name), cost, figure(peak)]);
        }
    }
    let sides_table = table::render_table(
        &title,
        &["side", unit.rate, "least", "most", &format!("all {}", unit.cost), "others %"],
        &rows,
    );
    let spent = table::render_table("", &["process", unit.cost, "peak MiB"], &spent);
    let others = sides.iter().filter_map(Transfer::others_percent).fold(0.0, f64::max);
    format!("{sides_table}{spent}{}", comparison::warning(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_shows_the_median_of_its_rounds_and_the_cost_of_all() {
        let process = MeasuredProcess { name: "edge".into(), pid: std::process::id() };
        let mut side = Transfer::new("product", BYTES, vec![process]);
        for (megabytes, cpu_us) in [(100, 100_000), (300, 200_000), (200, 300_000)] {
            let spent = Spent { seconds: 1.0, cpu_us: Some(vec![cpu_us]), others: Some(0.25) };
            side.add(TransferRound { amount: megabytes * 1_000_000, spent, own_us: vec![("load", 60_000)] });
        }
        let figures = side.figures();
        assert_eq!(figures["rate"], 200.0);
        // 0.6 s for 0.6 GB.
        assert_eq!(figures["processes"][0]["cost"], 1.0);
        assert_eq!(figures["processes"][1]["cost"], 0.3);
        let text = tables("title", &[side]);
        assert!(text.contains("product: edge") && text.contains("product: load"), "{text}");
        assert!(text.contains("1.300"), "{text}");
        assert!(text.contains("took up to 25 % of the machine"), "{text}");
    }
}
