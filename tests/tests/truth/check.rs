//! Compares every recorded answer with the history of the store.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    faults::{Fault, FaultWindow},
    history::{Content, History, State},
    reader::{Encoding, ReadRecord, ReadResult},
    world::World,
};

/// Greatest age of an answer while the store is reachable.
const AGE: Duration = Duration::from_secs(1);

/// Greatest age of an answer while the store is unreachable.
const AGE_AWAY: Duration = Duration::from_secs(10);

/// After the end of a fault, refusals and stale answers are excused for this long.
const RECOVERED_WITHIN: Duration = Duration::from_secs(5);

/// Counts of the answers and the differences found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) answers: usize,
    pub(crate) unchanged: usize,
    /// Answers older than [`AGE`] whose read overlapped a store outage.
    pub(crate) stale_while_away: usize,
    pub(crate) refused: usize,
    /// The longest time from the end of a fault to a request that was refused because of it.
    pub(crate) refused_after: Duration,
    pub(crate) broken: usize,
    /// Answers that were requested before the first equal answer had arrived, hence not from the edge's
    /// cache.
    pub(crate) uncached: usize,
    /// Descriptions of the differences, by kind.
    pub(crate) differences: BTreeMap<&'static str, Vec<String>>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differences: usize = self.differences.values().map(Vec::len).sum();
        write!(
            f,
            "{} answers ({} of them 304, {} stale while the store was away), {} refused \
             (up to {:?} after a trouble), {} broken, {differences} differences",
            self.answers,
            self.unchanged,
            self.stale_while_away,
            self.refused,
            self.refused_after,
            self.broken
        )?;
        for (kind, found) in &self.differences {
            write!(f, "\n{kind}: {}", found.len())?;
            for difference in found.iter().take(3) {
                write!(f, "\n    {difference}")?;
            }
        }
        Ok(())
    }
}

/// Checks the results of all reads.
pub(crate) fn check(
    history: &History,
    reads: &[ReadRecord],
    windows: &[FaultWindow],
    begun: Instant,
) -> Report {
    let states = history.states();
    let mut check = Check {
        heights: heights(&states),
        states,
        history,
        windows,
        begun,
        report: Report::default(),
        greatest_heights: HashMap::new(),
        tags: HashMap::new(),
    };
    for read in reads {
        check.read(read);
    }
    check.report.uncached = uncached(reads);
    check.report
}

struct Check<'a> {
    history: &'a History,
    states: Vec<State>,
    /// The index range in `states` of each height.
    heights: HashMap<u64, Range<usize>>,
    windows: &'a [FaultWindow],
    begun: Instant,
    report: Report,
    /// By connection: the greatest height in its answers so far.
    greatest_heights: HashMap<usize, u64>,
    tags: HashMap<(usize, Arc<str>), Content>,
}

impl Check<'_> {
    fn read(&mut self, read: &ReadRecord) {
        match &read.result {
            ReadResult::Answer { is_304, height, time_ns, etag, content } => {
                self.report.answers += 1;
                self.report.unchanged += usize::from(*is_304);
                self.content(read, *height, *content);
                let expected_ns =
                    u64::try_from(World::time_s(height.cast_signed())).unwrap_or_default() * 1_000_000_000;
                if *time_ns != expected_ns {
                    self.add_difference(
                        "the time of another block",
                        read,
                        format!("{time_ns} and not {expected_ns}"),
                    );
                }
                let greatest = self.greatest_heights.entry(read.connection).or_default();
                let (before, now) = (*greatest, *height);
                *greatest = before.max(now);
                if now < before {
                    self.add_difference("a height that went back", read, format!("{before}, then {now}"));
                }
                let tagged = *self.tags.entry((read.question, Arc::clone(etag))).or_insert(*content);
                if tagged != *content {
                    self.add_difference("one tag for two contents", read, etag);
                }
            }
            ReadResult::Refused { status, has_retry_after } => {
                self.report.refused += 1;
                if !matches!(status, 503 | 504) || !has_retry_after || !self.is_excused(read) {
                    self.add_difference("an error without a reason", read, status);
                }
            }
            ReadResult::Broken => {
                self.report.broken += 1;
                let is_restart = |window: &FaultWindow| matches!(window.fault, Fault::EdgeRestart { edge, .. } if edge == read.edge);
                if !self.is_during(read, Duration::ZERO, is_restart) {
                    self.add_difference("a connection that broke without a reason", read, "");
                }
            }
            ReadResult::Odd(what) => self.add_difference("an odd answer", read, what),
        }
    }

    /// The content must equal that of a state with this height, and that state must have existed between the
    /// answer's arrival and the greatest allowed age before the request.
    fn content(&mut self, read: &ReadRecord, height: u64, content: Content) {
        let indices = self.heights.get(&height).cloned().unwrap_or_default();
        let states = &self.states[indices];
        let mut equal = states.iter().filter(|state| state.answers[read.question] == content).peekable();
        if equal.peek().is_none() {
            let text = format!("height {height}: {}", self.history.text(content));
            return self.add_difference("not what the store said at this height", read, text);
        }
        // States are in order of time: the last that qualifies gives the least age.
        let Some(state) = equal.rfind(|state| state.begins <= read.received) else {
            return self.add_difference("an answer from the future", read, format!("height {height}"));
        };
        let Some(ended) = state.ends.filter(|ends| *ends < read.sent) else { return };
        let age = read.sent - ended;
        let is_away = |window: &FaultWindow| matches!(window.fault, Fault::StoreCut | Fault::StoreFrozen);
        let is_away = self.is_during(read, RECOVERED_WITHIN, is_away);
        match age {
            age if age <= AGE => {}
            age if is_away && age <= AGE_AWAY => self.report.stale_while_away += 1,
            age => self.add_difference(
                "an answer that was too old",
                read,
                format!("height {height}, by {age:?}"),
            ),
        }
    }

    /// Whether a refusal is excused: by a store outage, the edge's own connection to the bus being cut, or a
    /// restart of the only `node-info` replica.
    fn is_excused(&mut self, read: &ReadRecord) -> bool {
        let history = self.history;
        let excuses = |window: &&FaultWindow| match window.fault {
            Fault::StoreCut | Fault::StoreFrozen => true,
            Fault::BusCut { edge } => edge == read.edge,
            Fault::NodeInfoRestart { .. } => history.questions[read.question].path.ends_with("/limits"),
            _ => false,
        };
        let begun = self.windows.iter().filter(|window| window.from <= read.received);
        let Some(end) = begun.filter(excuses).map(|window| window.to).max() else { return false };
        let after = read.sent.saturating_duration_since(end);
        if after <= RECOVERED_WITHIN {
            self.report.refused_after = self.report.refused_after.max(after);
        }
        after <= RECOVERED_WITHIN
    }

    fn is_during(
        &self,
        read: &ReadRecord,
        and_after: Duration,
        predicate: impl Fn(&FaultWindow) -> bool,
    ) -> bool {
        let overlaps =
            |window: &FaultWindow| window.from <= read.received && read.sent <= window.to + and_after;
        self.windows.iter().any(|window| predicate(window) && overlaps(window))
    }

    fn add_difference(&mut self, kind: &'static str, read: &ReadRecord, what: impl fmt::Display) {
        let (path, ReadRecord { connection, edge, encoding, sent, received, .. }) =
            (&self.history.questions[read.question].path, read);
        let (at, took) = (*sent - self.begun, *received - *sent);
        let is_304 = matches!(read.result, ReadResult::Answer { is_304: true, .. });
        let found = format!(
            "at {at:?} (took {took:?}), edge {edge}, connection {connection}, {encoding:?}, 304: {is_304}, {path}: {what}"
        );
        self.report.differences.entry(kind).or_default().push(found);
    }
}

fn heights(states: &[State]) -> HashMap<u64, Range<usize>> {
    let mut heights: HashMap<u64, Range<usize>> = HashMap::new();
    for (index, state) in states.iter().enumerate() {
        heights.entry(state.height).or_insert(index..index).end = index + 1;
    }
    heights
}

/// Counts the answers that were requested before the first equal answer from the same edge had arrived.
fn uncached(reads: &[ReadRecord]) -> usize {
    let mut first: HashMap<(usize, usize, Encoding, &str), Instant> = HashMap::new();
    let answers = || {
        reads.iter().filter_map(|read| match &read.result {
            ReadResult::Answer { etag, .. } => {
                Some(((read.edge, read.question, read.encoding, &**etag), read))
            }
            _ => None,
        })
    };
    for (kind, read) in answers() {
        let at = first.entry(kind).or_insert(read.received);
        *at = read.received.min(*at);
    }
    answers().filter(|(kind, read)| read.sent < first[kind]).count()
}
