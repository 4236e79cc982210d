//! The suites, their sections, and the selection by the command line.

use clap::{ValueEnum, builder::PossibleValue};
use mesh::failure::Failure;

/// A family of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Reads of the store: single rows, hot rows, pages
    Reads,
    /// Downloads and what they come from: stored history, sealing, the ledger
    Exports,
    /// Transactions on their way to the consensus node
    Relay,
    /// All of them, one after the other
    All,
}

/// One measurement of some family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SectionName {
    /// Of reads.
    Reads(ReadsSection),
    /// Of exports.
    Exports(ExportsSection),
    /// Of the relay.
    Relay(RelaySection),
}

/// A measurement of reads, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ReadsSection {
    /// Single rows under load, with the bus and without
    Point,
    /// What the bus adds to one read when nothing else runs
    Hop,
    /// The same few rows again and again, against the least that warp can answer
    Hot,
    /// Single rows in one process, against pgbench
    Store,
    /// A page of candles as JSON, against plain serde_json
    Page,
    /// The first page of a long list, against a deep one
    Depth,
    /// How soon each edge knows of a new block
    Heads,
    /// Single rows while telemetry goes to a collector, against none
    Telling,
}

/// A measurement of exports, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ExportsSection {
    /// A stored export, against the bus alone and against deflating it anew
    Splice,
    /// The time to the first byte of an export of a thousand segments
    FirstByte,
    /// Sealing a segment, against psql and gzip
    Sealing,
    /// The ledger of a large party as CSV, against psql
    Ledger,
    /// Four workers, against one
    Scaling,
    /// Single rows beside downloads at full speed
    Beside,
    /// Workers that come and go under downloads, what an autoscaler would do, and single rows beside them
    Scaled,
}

/// A measurement of the relay, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum RelaySection {
    /// Submissions under load, against the node's own RPC
    Submit,
    /// What the way through the mesh adds to one submission when nothing else runs
    SubmitHop,
}

/// Every measurement, in the order in which they are made.
const SECTIONS: [SectionName; 17] = {
    use ExportsSection::{Beside, FirstByte, Ledger, Scaled, Scaling, Sealing, Splice};
    use ReadsSection::{Depth, Heads, Hop, Hot, Page, Point, Store, Telling};
    use RelaySection::{Submit, SubmitHop};
    use SectionName::{Exports, Reads, Relay};
    [
        Reads(Point),
        Reads(Hop),
        Reads(Hot),
        Reads(Store),
        Reads(Page),
        Reads(Depth),
        Reads(Heads),
        Reads(Telling),
        Exports(Splice),
        Exports(FirstByte),
        Exports(Sealing),
        Exports(Ledger),
        Exports(Scaling),
        Exports(Beside),
        Exports(Scaled),
        Relay(Submit),
        Relay(SubmitHop),
    ]
};

impl ValueEnum for SectionName {
    fn value_variants<'a>() -> &'a [Self] {
        &SECTIONS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Reads(section) => section.to_possible_value(),
            Self::Exports(section) => section.to_possible_value(),
            Self::Relay(section) => section.to_possible_value(),
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
pub(crate) fn chosen(suite: Suite, named: &[SectionName]) -> Result<Vec<SectionName>, Failure> {
    let is_of_suite = |section: &SectionName| match section {
        SectionName::Reads(_) => matches!(suite, Suite::Reads | Suite::All),
        SectionName::Exports(_) => matches!(suite, Suite::Exports | Suite::All),
        SectionName::Relay(_) => matches!(suite, Suite::Relay | Suite::All),
    };
    if let Some(other) = named.iter().find(|section| !is_of_suite(section)) {
        let names = SECTIONS.iter().filter(|section| is_of_suite(section)).map(ToString::to_string);
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("{other} is of another suite; this one has {names}")));
    }
    let is_wanted = |section: &SectionName| named.is_empty() || named.contains(section);
    Ok(SECTIONS.into_iter().filter(is_of_suite).filter(is_wanted).collect())
}
