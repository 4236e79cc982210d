//! The report of a phase: figures, and bars that hold or do not.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::table;

/// Greatest number of messages printed for each phase.
const SHOWN: usize = 6;

/// One figure: a column of the table, and a member of the JSON.
pub(crate) struct Column {
    heading: &'static str,
    member: &'static str,
    cell: String,
    json: Value,
}

impl Column {
    /// A figure with this text in the table, and this value in the JSON.
    pub(crate) fn new(
        heading: &'static str,
        member: &'static str,
        cell: impl Into<String>,
        json: Value,
    ) -> Self {
        Self { heading, member, cell: cell.into(), json }
    }

    pub(crate) fn count(
        heading: &'static str,
        member: &'static str,
        count: impl Copy + ToString + Serialize,
    ) -> Self {
        Self::new(heading, member, count.to_string(), json!(count))
    }

    /// A time in milliseconds.
    pub(crate) fn time(heading: &'static str, member: &'static str, time: Duration) -> Self {
        Self::new(heading, member, format!("{:.1}", time.as_secs_f64() * 1e3), json!(ms(time)))
    }
}

/// The results of a phase.
pub(crate) struct Report {
    pub(crate) name: String,
    /// Figures of the load during the phase.
    columns: Vec<Column>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) notes: Vec<String>,
    /// Messages that failed requests got.
    pub(crate) messages: Vec<String>,
}

/// A condition that must hold.
pub(crate) struct Bar {
    what: String,
    holds: bool,
}

impl Report {
    /// Creates a report with these figures and no bars.
    pub(crate) fn new(name: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { name: name.into(), columns, bars: Vec::new(), notes: Vec::new(), messages: Vec::new() }
    }

    /// The report of a phase that could not be completed: `why` is its only bar, and does not hold.
    pub(crate) fn failed(name: impl Into<String>, why: &str) -> Self {
        let mut report = Self::new(name, Vec::new());
        report.bar(why.to_owned(), false);
        report
    }

    pub(crate) fn bar(&mut self, what: impl Into<String>, holds: bool) {
        self.bars.push(Bar { what: what.into(), holds });
    }

    /// Adds the condition that nothing of this is found.
    pub(crate) fn bar_none(&mut self, what: &str, found: usize) {
        self.bar(format!("{what}: {found}, at most 0"), found == 0);
    }

    /// Adds the condition that none of these is found; each of them is a message.
    pub(crate) fn bar_empty(&mut self, what: &str, found: Vec<String>) {
        self.bar_none(what, found.len());
        self.messages.extend(found);
    }

    /// Adds the condition that none of these, of which there are some, is found to be so.
    pub(crate) fn bar_none_of(&mut self, what: &str, found: usize, all: usize) {
        self.bar(format!("{what}: {found} of {all}, at most 0"), found == 0 && all > 0);
    }

    /// Adds the condition that a time is at most `bound`.
    pub(crate) fn bar_at_most(&mut self, what: &str, found: Duration, bound: Duration) {
        self.bar(format!("{what}: {}, at most {}", in_ms(found), in_ms(bound)), found <= bound);
    }

    pub(crate) fn holds(&self) -> bool {
        self.bars.iter().all(|bar| bar.holds)
    }

    /// Bars, notes and the first messages as text lines.
    pub(crate) fn lines(&self) -> String {
        let bars = self.bars.iter().map(|bar| {
            let verdict = if bar.holds { "holds" } else { "DOES NOT HOLD" };
            format!("  {}: {verdict}\n", bar.what)
        });
        let notes = self.notes.iter().map(|note| format!("  {note}\n"));
        let messages = self.messages.iter().take(SHOWN).map(|message| format!("  said {message}\n"));
        let body: String = bars.chain(notes).chain(messages).collect();
        format!("{}\n{body}", self.name)
    }

    pub(crate) fn json(&self) -> Value {
        let bars = self.bars.iter().map(|bar| json!({ "what": bar.what, "holds": bar.holds }));
        let members = self.columns.iter().map(|column| (column.member.to_owned(), column.json.clone()));
        let mut json: Map<String, Value> = members.collect();
        json.insert("phase".to_owned(), json!(self.name));
        json.insert("bars".to_owned(), bars.collect());
        json.insert("notes".to_owned(), json!(self.notes));
        json.insert("said".to_owned(), json!(self.messages));
        json.into()
    }
}

/// Renders the figures of several phases as a table.
pub(crate) fn render_table(title: &str, reports: &[Report]) -> String {
    // A failed phase may have no figures.
    let columns = reports.iter().map(|report| &report.columns).max_by_key(|columns| columns.len());
    let headings = columns.into_iter().flatten().map(|column| column.heading);
    let heading: Vec<&str> = ["phase"].into_iter().chain(headings).collect();
    let row = |report: &Report| {
        let cells = report.columns.iter().map(|column| column.cell.clone());
        let blank = std::iter::repeat(String::new());
        [report.name.clone()].into_iter().chain(cells).chain(blank).take(heading.len()).collect()
    };
    table::render_table(title, &heading, &reports.iter().map(row).collect::<Vec<_>>())
}

/// A time as text, in whole milliseconds.
pub(crate) fn in_ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// A time in milliseconds with two decimals, for JSON.
pub(crate) fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_when_all_its_bars_do() {
        let mut report = Report::new("kill", vec![Column::count("count", "count", 7)]);
        report.bar_at_most("p99", Duration::from_millis(5), Duration::from_millis(5));
        assert!(report.holds());
        report.bar_at_most("p50", Duration::from_millis(6), Duration::from_millis(5));
        assert!(!report.holds());
        assert!(report.lines().contains("p50: 6 ms, at most 5 ms: DOES NOT HOLD"));
        assert_eq!(report.json()["bars"][1]["holds"], false);
        assert_eq!(report.json()["count"], 7);
        assert_eq!(render_table("Title", &[report]), "Title\nphase  count\nkill       7\n");
        assert!(!Report::failed("kill", "no process to kill").holds());
    }
}
