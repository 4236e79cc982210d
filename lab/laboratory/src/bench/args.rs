//! The forms of `bench`, and of what it compares the product with.

use std::path::PathBuf;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::sections::{ALL, SUITES};

/// Options of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The suite to measure, or one section
    #[arg(default_value = "reads", value_parser = suites())]
    pub(crate) suite: String,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Measure only this section, repeatable [default: all]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(sections()))]
    pub(crate) section: Vec<String>,
    /// Length of a timed round of load
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Size of the stored history of the exports suite, in megabytes of segment files
    #[arg(
        long, value_name = "MB", default_value_t = 2000,
        value_parser = clap::value_parser!(u64).range(10..=100_000)
    )]
    pub(crate) megabytes: u64,
    /// Rows that the sealing section seals; the ledger section exports half as many
    #[arg(
        long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1000..=10_000_000)
    )]
    pub(crate) rows: u64,
}

fn sections() -> impl Iterator<Item = PossibleValue> {
    let rows = SUITES.iter().flat_map(|suite| suite.sections);
    rows.map(|row| PossibleValue::new(row.name).help(row.about))
}

fn suites() -> PossibleValuesParser {
    let suites = SUITES.iter().map(|suite| PossibleValue::new(suite.name).help(suite.about));
    let all = PossibleValue::new(ALL).help("All suites in sequence");
    PossibleValuesParser::new(suites.chain([all]).chain(sections().map(|section| section.hide(true))))
}

/// Options of `baseline`.
#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// The baseline to serve
    #[arg(value_enum)]
    pub(crate) kind: Baseline,
}

/// A process that `bench` compares the product with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// The handler of single rows with warp, without the bus, on one thread
    Direct,
    /// The same, with two threads for HTTP and one for the handler
    DirectThreads,
    /// Hello, World, on one thread
    Hello,
    /// The repeated answer of another server to one request, on one thread
    Repeated,
}
