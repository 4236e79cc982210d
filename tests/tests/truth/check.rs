//! The check: every answer against the history of the store.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    history::{Content, History, State},
    reader::{Form, Reading, Told},
    trouble::{Spell, Trouble},
    world::World,
};

/// How old an answer may be while the store is there.
const AGE: Duration = Duration::from_secs(1);

/// How old while it is away.
const AGE_AWAY: Duration = Duration::from_secs(10);

/// How soon everything is well again after a trouble.
const WELL_WITHIN: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) answers: usize,
    pub(crate) unchanged: usize,
    /// Older than a second, and rightly so.
    pub(crate) stale_while_away: usize,
    pub(crate) refused: usize,
    /// How long after a trouble somebody was refused for it, at most.
    pub(crate) refused_after: Duration,
    pub(crate) broken: usize,
    /// Answers that were asked for before the first of their kind had come: none of them was kept.
    pub(crate) at_first_hand: usize,
    /// By kind of fault; what it was, one by one.
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
            for one in found.iter().take(3) {
                write!(f, "\n    {one}")?;
            }
        }
        Ok(())
    }
}

/// Checks everything that all readers were told.
pub(crate) fn check(history: &History, reads: &[Reading], spells: &[Spell], begun: Instant) -> Report {
    let states = history.states();
    let mut check = Check {
        heights: heights(&states),
        states,
        history,
        spells,
        begun,
        report: Report::default(),
        floors: HashMap::new(),
        tags: HashMap::new(),
    };
    for read in reads {
        check.read(read);
    }
    check.report.at_first_hand = at_first_hand(reads);
    check.report
}

struct Check<'a> {
    history: &'a History,
    states: Vec<State>,
    /// The states of each height.
    heights: HashMap<u64, Range<usize>>,
    spells: &'a [Spell],
    begun: Instant,
    report: Report,
    /// The highest height that a connection was told.
    floors: HashMap<usize, u64>,
    tags: HashMap<(usize, Arc<str>), Content>,
}

impl Check<'_> {
    fn read(&mut self, read: &Reading) {
        match &read.told {
            Told::Answer { is_304, height, time_ns, etag, content } => {
                self.report.answers += 1;
                self.report.unchanged += usize::from(*is_304);
                self.content(read, *height, *content);
                let right =
                    u64::try_from(World::time_s(height.cast_signed())).unwrap_or_default() * 1_000_000_000;
                if *time_ns != right {
                    self.differs("the time of another block", read, format!("{time_ns} and not {right}"));
                }
                let floor = self.floors.entry(read.connection).or_default();
                let (before, now) = (*floor, *height);
                *floor = before.max(now);
                if now < before {
                    self.differs("a height that went back", read, format!("{before}, then {now}"));
                }
                let tagged = *self.tags.entry((read.question, Arc::clone(etag))).or_insert(*content);
                if tagged != *content {
                    self.differs("one tag for two contents", read, etag);
                }
            }
            Told::Refused { status, says_when } => {
                self.report.refused += 1;
                if !matches!(status, 503 | 504) || !says_when || !self.may_be_refused(read) {
                    self.differs("an error without a reason", read, status);
                }
            }
            Told::Broken => {
                self.report.broken += 1;
                let is_restart = |spell: &Spell| matches!(spell.trouble, Trouble::EdgeRestart { edge, .. } if edge == read.edge);
                if !self.is_during(read, Duration::ZERO, is_restart) {
                    self.differs("a connection that broke without a reason", read, "");
                }
            }
            Told::Odd(what) => self.differs("an odd answer", read, what),
        }
    }

    /// The content must be that of a state of this height which was there at some moment of the time allowed.
    fn content(&mut self, read: &Reading, height: u64, content: Content) {
        let of_height = self.heights.get(&height).cloned().unwrap_or_default();
        let states = &self.states[of_height];
        let mut equal = states.iter().filter(|state| state.answers[read.question] == content).peekable();
        if equal.peek().is_none() {
            let text = format!("height {height}: {}", self.history.text(content));
            return self.differs("not what the store said at this height", read, text);
        }
        // Later ones end later.
        let Some(state) = equal.rfind(|state| state.begins <= read.received) else {
            return self.differs("an answer from the future", read, format!("height {height}"));
        };
        let Some(ended) = state.ends.filter(|ends| *ends < read.sent) else { return };
        let age = read.sent - ended;
        let is_away = |spell: &Spell| matches!(spell.trouble, Trouble::StoreCut | Trouble::StoreFrozen);
        let is_away = self.is_during(read, WELL_WITHIN, is_away);
        match age {
            age if age <= AGE => {}
            age if is_away && age <= AGE_AWAY => self.report.stale_while_away += 1,
            age => self.differs("an answer that was too old", read, format!("height {height}, by {age:?}")),
        }
    }

    /// Nobody is refused unless the store, the edge's own way to the bus, or the only replica is gone.
    fn may_be_refused(&mut self, read: &Reading) -> bool {
        let history = self.history;
        let excuses = |spell: &&Spell| match spell.trouble {
            Trouble::StoreCut | Trouble::StoreFrozen => true,
            Trouble::BusCut { edge } => edge == read.edge,
            Trouble::NodeInfoRestart { .. } => history.questions[read.question].path.ends_with("/limits"),
            _ => false,
        };
        let begun = self.spells.iter().filter(|spell| spell.from <= read.received);
        let Some(over) = begun.filter(excuses).map(|spell| spell.to).max() else { return false };
        let after = read.sent.saturating_duration_since(over);
        if after <= WELL_WITHIN {
            self.report.refused_after = self.report.refused_after.max(after);
        }
        after <= WELL_WITHIN
    }

    fn is_during(&self, read: &Reading, and_after: Duration, wanted: impl Fn(&Spell) -> bool) -> bool {
        let overlaps = |spell: &Spell| spell.from <= read.received && read.sent <= spell.to + and_after;
        self.spells.iter().any(|spell| wanted(spell) && overlaps(spell))
    }

    fn differs(&mut self, kind: &'static str, read: &Reading, what: impl fmt::Display) {
        let (path, Reading { connection, edge, form, sent, received, .. }) =
            (&self.history.questions[read.question].path, read);
        let (at, took) = (*sent - self.begun, *received - *sent);
        let is_304 = matches!(read.told, Told::Answer { is_304: true, .. });
        let found = format!(
            "at {at:?} (took {took:?}), edge {edge}, connection {connection}, {form:?}, 304: {is_304}, {path}: {what}"
        );
        self.report.differences.entry(kind).or_default().push(found);
    }
}

fn heights(states: &[State]) -> HashMap<u64, Range<usize>> {
    let mut heights: HashMap<u64, Range<usize>> = HashMap::new();
    for (place, state) in states.iter().enumerate() {
        heights.entry(state.height).or_insert(place..place).end = place + 1;
    }
    heights
}

/// How many answers were asked for before the first equal one had come from their edge.
fn at_first_hand(reads: &[Reading]) -> usize {
    let mut first: HashMap<(usize, usize, Form, &str), Instant> = HashMap::new();
    let answers = || {
        reads.iter().filter_map(|read| match &read.told {
            Told::Answer { etag, .. } => Some(((read.edge, read.question, read.form, &**etag), read)),
            _ => None,
        })
    };
    for (kind, read) in answers() {
        let at = first.entry(kind).or_insert(read.received);
        *at = read.received.min(*at);
    }
    answers().filter(|(kind, read)| read.sent < first[kind]).count()
}
