//! The suites and their sections, the bars of each, and the selection by the command line.

use clap::{ValueEnum, builder::PossibleValue};
use mesh::failure::Failure;

/// A family of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Reads of the store: single rows, hot rows, pages
    Reads,
    /// Downloads and their sources: stored history, sealing, the ledger
    Exports,
    /// Transactions from a client to the consensus node
    Relay,
    /// Watches, against polling
    Watch,
    /// A chain's blocks from the node into the store
    Ingest,
    /// An idle mesh
    Rest,
    /// All suites in sequence
    All,
}

/// A measurement, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionName {
    /// Single rows under load, with the bus and without
    Point,
    /// Latency that the bus adds to one read on an idle mesh
    Hop,
    /// Cost of a single row over one connection, by HTTP and by gRPC
    Alone,
    /// The same few rows repeatedly, against a constant answer of warp
    Hot,
    /// Single rows in one process, against pgbench
    Store,
    /// PostgreSQL's work for a page of each list, against the plain statement by pgbench
    Lists,
    /// PostgreSQL's work for a single row, against the plain statement by pgbench
    Points,
    /// Rows that are each read once through the default cache, against no cache
    Distinct,
    /// A page of candles as JSON, against plain serde_json
    Page,
    /// The first page of a long list, against a deep one
    Depth,
    /// Delay of a new block at each edge
    Heads,
    /// Single rows with telemetry sent to a collector, against none
    Telling,
    /// A stored export, against the bus alone and against deflating it again
    Splice,
    /// The time to the first byte of an export of a thousand segments
    FirstByte,
    /// Sealing a segment, against psql and gzip
    Sealing,
    /// The ledger of a large party as CSV, against psql
    Ledger,
    /// Four workers, against one
    Scaling,
    /// Single rows during downloads at full speed
    Beside,
    /// Workers that are added and removed during downloads, the autoscaling signal, and single rows meanwhile
    Scaled,
    /// Submissions under load, against the node's own RPC
    Submit,
    /// Latency that the mesh adds to one submission when idle
    SubmitHop,
    /// Ten thousand watchers at a block a second, against the same clients polling
    Watchers,
    /// The same where a block changes few of the answers
    WatchQuiet,
    /// Single rows with ten thousand watchers
    WatchBeside,
    /// Rows a second while catching up with a chain, against psql's COPY of the same rows
    CatchUp,
    /// The time from a block at the node until a read at an edge shows it
    Front,
    /// Processor time and memory of an idle mesh
    Idle,
    /// Processor time and memory of ingest while blocks without rows come
    Following,
}

/// A required bound with a goal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    /// On which side of the bound the figure must be.
    pub(super) limit: Limit,
    /// The required bound.
    pub(super) bound: f64,
    /// The goal.
    pub(super) aim: f64,
}

/// The side of a bound that holds; the bound itself does, too.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// The figure must be the bound or more.
    AtLeast,
    /// The figure must be the bound or less.
    AtMost,
}

impl SectionName {
    /// The suite that it belongs to.
    pub(super) fn suite(self) -> Suite {
        self.row().0
    }

    /// Its bars, in the order of the figures that must reach them.
    pub(super) fn bars(self) -> Vec<Bar> {
        self.row().1
    }

    fn row(self) -> (Suite, Vec<Bar>) {
        let at_least = |bound, aim| Bar { limit: Limit::AtLeast, bound, aim };
        let at_most = |bound, aim| Bar { limit: Limit::AtMost, bound, aim };
        match self {
            Self::Point => (Suite::Reads, vec![at_least(0.5, 0.65)]),
            Self::Hop => (Suite::Reads, vec![at_most(0.3, 0.15)]),
            Self::Alone => (Suite::Reads, vec![at_most(300.0, 250.0), at_most(400.0, 300.0)]),
            Self::Hot => (Suite::Reads, vec![at_least(0.75, 0.9), at_least(0.9, 1.0)]),
            Self::Store => (Suite::Reads, vec![at_least(1.0, 1.6)]),
            Self::Lists => (Suite::Reads, vec![at_most(1.25, 1.1)]),
            Self::Points => (Suite::Reads, vec![at_most(1.6, 1.25)]),
            Self::Distinct => (Suite::Reads, vec![at_most(1.1, 1.0)]),
            Self::Page => (Suite::Reads, vec![at_least(0.8, 1.0)]),
            Self::Depth => (Suite::Reads, vec![at_most(1.3, 1.1)]),
            Self::Heads => (Suite::Reads, vec![at_most(50.0, 10.0)]),
            Self::Telling => (Suite::Reads, vec![at_most(1.05, 1.02)]),
            Self::Splice => (Suite::Exports, vec![at_least(0.5, 0.8), at_least(5.0, 10.0)]),
            Self::FirstByte => (Suite::Exports, vec![at_most(5.0, 1.0)]),
            Self::Sealing => (Suite::Exports, vec![at_least(0.8, 1.5)]),
            Self::Ledger => (Suite::Exports, vec![at_least(0.8, 0.9)]),
            Self::Scaling => (Suite::Exports, vec![at_least(0.9, 1.0)]),
            // No bar: the right balance depends on the deployment.
            Self::Beside => (Suite::Exports, vec![]),
            Self::Scaled => (Suite::Exports, vec![at_most(1.25, 1.0)]),
            Self::Submit => (Suite::Relay, vec![at_least(0.5, 0.8)]),
            Self::SubmitHop => (Suite::Relay, vec![at_most(0.5, 0.3)]),
            Self::Watchers => (
                Suite::Watch,
                vec![
                    at_most(250.0, 100.0),
                    at_most(0.0, 0.0),
                    at_most(500.0, 300.0),
                    at_most(16.0, 12.0),
                    at_most(1.0, 0.25),
                ],
            ),
            Self::WatchQuiet => (Suite::Watch, vec![at_most(0.0, 0.0), at_most(0.25, 0.2)]),
            Self::WatchBeside => (Suite::Watch, vec![at_most(1.25, 1.1)]),
            Self::CatchUp => (Suite::Ingest, vec![at_least(0.5, 0.7), at_least(0.5, 0.7)]),
            Self::Front => (Suite::Ingest, vec![at_most(100.0, 50.0)]),
            Self::Following => (Suite::Rest, vec![at_most(1.0, 0.5), at_most(12.0, 10.0)]),
            Self::Idle => (Suite::Rest, vec![at_most(7.0, 3.0), at_most(80.0, 75.0)]),
        }
    }
}

impl std::fmt::Display for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

/// The sections to be measured, in order: those that were named, or all of the suite.
///
/// # Errors
/// When a named section belongs to another suite.
pub(super) fn chosen(suite: Suite, named: &[SectionName]) -> Result<Vec<SectionName>, Failure> {
    let is_of_suite = |section: &SectionName| suite == Suite::All || section.suite() == suite;
    let all = SectionName::value_variants().iter().copied().filter(is_of_suite);
    if let Some(other) = named.iter().find(|section| !is_of_suite(section)) {
        let names = all.map(|section| section.to_string()).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("{other} is of another suite; this one has {names}")));
    }
    Ok(all.filter(|section| named.is_empty() || named.contains(section)).collect())
}
