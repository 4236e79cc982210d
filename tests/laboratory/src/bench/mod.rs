//! `mesh bench`: measurements on a private mesh, which is removed afterwards.
//!
//! In: the sections to measure. Out: a table on standard output, and optionally the same figures as a JSON
//! file. Compared sides run in alternating rounds, so that other load on the machine affects all of them.

pub(crate) mod args;
mod bar;
pub(crate) mod baseline;
mod baseline_process;
mod comparison;
mod cost;
mod deep_pages;
mod exports;
mod heads;
mod hot;
mod load;
mod meter;
mod page;
mod point;
mod reads;
mod relay;
pub(crate) mod sections;
mod store;
mod telemetry_overhead;
mod transfer;
mod withdrawals;

use mesh::{failure::Failure, signals::Signals};
use serde_json::{Value, json};

use self::{
    bar::Bar,
    sections::{ExportsSection, ReadsSection, RelaySection, SectionName},
};
use crate::{bench::args::BenchArgs, private::PrivateMesh};

/// Runs the chosen sections, prints their tables and writes the figures.
pub(crate) async fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let names = sections::chosen(args.suite, &args.section)?;
    let mut signals = Signals::watch()?;
    let (mut reads, mut exports, mut relay) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match name {
            SectionName::Reads(name) => reads.push(name),
            SectionName::Exports(name) => exports.push(name),
            SectionName::Relay(name) => relay.push(name),
        }
    }
    let mut sections = Vec::new();
    for suite in [SuiteSections::Reads(reads), SuiteSections::Exports(exports), SuiteSections::Relay(relay)] {
        if suite.is_empty() {
            continue;
        }
        // Each suite has its own mesh, so that data and processes of one do not affect another.
        let mesh = PrivateMesh::new()?;
        let outcome = tokio::select! {
            outcome = suite.measure(&mesh, args) => outcome,
            () = signals.stop() => Err(Failure::failed("the benchmark was interrupted; run it again for figures")),
        };
        mesh.stop().await;
        sections.extend(outcome?);
    }
    if let Some(file) = &args.json {
        let figures: Vec<&Value> = sections.iter().map(|section| &section.figures).collect();
        let figures = json!({ "sections": figures });
        std::fs::write(file, format!("{figures:#}\n")).map_err(|error| {
            Failure::failed(format!("cannot write {} ({error}); give another file", file.display()))
        })?;
    }
    let failures: Vec<String> =
        sections.into_iter().filter_map(|section| Some(section.verdict.err()?.to_string())).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

/// The chosen sections of one suite.
enum SuiteSections {
    Reads(Vec<ReadsSection>),
    Exports(Vec<ExportsSection>),
    Relay(Vec<RelaySection>),
}

impl SuiteSections {
    fn is_empty(&self) -> bool {
        match self {
            Self::Reads(names) => names.is_empty(),
            Self::Exports(names) => names.is_empty(),
            Self::Relay(names) => names.is_empty(),
        }
    }

    async fn measure(&self, mesh: &PrivateMesh, args: &BenchArgs) -> Result<Vec<Section>, Failure> {
        match self {
            Self::Reads(names) => reads::measure(mesh, names, args).await,
            Self::Exports(names) => exports::measure(mesh, names, args).await,
            Self::Relay(names) => relay::measure(mesh, names, args).await,
        }
    }
}

/// The results of a section.
struct Section {
    table: String,
    figures: Value,
    /// An error when a bar does not hold.
    verdict: Result<(), Failure>,
}

impl Section {
    /// Creates a section from its sides and bars.
    fn new(name: &str, table: &str, sides: &[Value], bars: &[Bar]) -> Self {
        let failures: Vec<String> =
            bars.iter().filter_map(|bar| Some(bar.verdict().err()?.to_string())).collect();
        let lines: String = bars.iter().map(Bar::line).collect();
        let bars: Vec<Value> = bars.iter().map(Bar::figures).collect();
        Self {
            table: format!("{table}{lines}"),
            figures: json!({ "section": name, "sides": sides, "bars": bars }),
            verdict: if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) },
        }
    }

    /// A section that cannot run on this machine.
    fn skipped(name: &str, why: &str) -> Self {
        Self {
            table: format!("{name}: skipped, {why}\n"),
            figures: json!({ "section": name, "skipped": why }),
            verdict: Ok(()),
        }
    }

    /// A section that failed without figures.
    fn failed(name: SectionName, failure: Failure) -> Self {
        let name = name.to_string();
        Self {
            table: format!("{name}: failed, {failure}\n"),
            figures: json!({ "section": name, "failed": failure.to_string() }),
            verdict: Err(failure),
        }
    }
}
