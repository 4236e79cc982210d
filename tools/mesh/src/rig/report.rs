//! What a phase found: figures, and bars that hold or do not.

use std::time::Duration;

use serde_json::{Value, json};

use super::samples::Figures;
use crate::table;

/// Texts that are shown of each phase.
const SHOWN: usize = 6;

/// What a phase found.
pub(super) struct Report {
    /// What happened.
    pub(super) name: String,
    /// Figures of the load while it happened.
    pub(super) figures: Figures,
    /// How long it took until every answer was as usual again.
    pub(super) normal_after: Option<Duration>,
    /// What must be the case.
    pub(super) bars: Vec<Bar>,
    /// What else is worth knowing.
    pub(super) notes: Vec<String>,
    /// What was said to requests that were not answered as wished.
    pub(super) said: Vec<String>,
}

/// Something that must be the case.
pub(super) struct Bar {
    what: String,
    holds: bool,
}

impl Report {
    /// Of these figures, with nothing to be kept so far.
    pub(super) fn of(name: impl Into<String>, figures: Figures) -> Self {
        Self {
            name: name.into(),
            figures,
            normal_after: None,
            bars: Vec::new(),
            notes: Vec::new(),
            said: Vec::new(),
        }
    }

    /// A phase that could not be gone through.
    pub(super) fn failed(name: impl Into<String>, why: &str) -> Self {
        let mut report = Self::of(name, Figures::default());
        report.bar(why.to_owned(), false);
        report
    }

    /// Adds what must be the case.
    pub(super) fn bar(&mut self, what: impl Into<String>, holds: bool) {
        self.bars.push(Bar { what: what.into(), holds });
    }

    /// Adds what must not be exceeded.
    pub(super) fn keeps(&mut self, what: &str, found: Duration, bound: Duration) {
        self.bar(format!("{what}: {}, at most {}", in_ms(found), in_ms(bound)), found <= bound);
    }

    /// Adds that every request is answered as wished.
    pub(super) fn none_fails(&mut self) {
        let lost = self.figures.requests - self.figures.fine;
        self.bar(format!("reads that failed: {lost} of {}, at most 0", self.figures.requests), lost == 0);
    }

    /// Adds that requests are answered as wished or refused politely, nothing else.
    pub(super) fn none_but_200_and_503(&mut self) {
        let failed = self.figures.failed;
        self.bar(
            format!("answers other than 200, and 503 with Retry-After: {failed}, at most 0"),
            failed == 0,
        );
    }

    /// Whether everything is as it must be.
    pub(super) fn holds(&self) -> bool {
        self.bars.iter().all(|bar| bar.holds)
    }

    fn row(&self) -> Vec<String> {
        let figures = &self.figures;
        let after = self.normal_after.map_or_else(|| "-".to_owned(), |after| after.as_millis().to_string());
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
        vec![
            self.name.clone(),
            figures.requests.to_string(),
            figures.fine.to_string(),
            figures.refused.to_string(),
            figures.failed.to_string(),
            figures.again.to_string(),
            ms(figures.p50),
            ms(figures.worst_p50),
            ms(figures.worst_p99),
            ms(figures.longest),
            after,
        ]
    }

    /// Everything beside the row of the table.
    pub(super) fn lines(&self) -> String {
        let bars = self.bars.iter().map(|bar| {
            let verdict = if bar.holds { "holds" } else { "DOES NOT HOLD" };
            format!("  {}: {verdict}\n", bar.what)
        });
        let notes = self.notes.iter().map(|note| format!("  {note}\n"));
        let said = self.said.iter().take(SHOWN).map(|said| format!("  said {said}\n"));
        let body: String = bars.chain(notes).chain(said).collect();
        format!("{}\n{body}", self.name)
    }

    /// The figures for a machine.
    pub(super) fn json(&self) -> Value {
        let figures = &self.figures;
        let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
        let bars = self.bars.iter().map(|bar| json!({ "what": bar.what, "holds": bar.holds }));
        json!({
            "phase": self.name, "requests": figures.requests, "ok": figures.fine, "refused": figures.refused,
            "failed": figures.failed, "askedAgain": figures.again, "p50Ms": ms(figures.p50),
            "worstSecondP50Ms": ms(figures.worst_p50), "worstSecondP99Ms": ms(figures.worst_p99),
            "longestMs": ms(figures.longest), "normalAfterMs": self.normal_after.map(ms),
            "bars": bars.collect::<Vec<_>>(), "notes": self.notes, "said": self.said,
        })
    }
}

/// Lays out the figures of several phases.
pub(super) fn laid_out(title: &str, reports: &[Report]) -> String {
    let heading = [
        "phase",
        "reads",
        "200",
        "503",
        "failed",
        "again",
        "p50 ms",
        "worst p50",
        "worst p99",
        "longest",
        "normal after ms",
    ];
    table::laid_out(title, &heading, &reports.iter().map(Report::row).collect::<Vec<_>>())
}

/// A time as people read it here.
pub(super) fn in_ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_when_all_its_bars_do() {
        let mut report =
            Report::of("kill", Figures { requests: 2, fine: 1, refused: 1, ..Figures::default() });
        report.none_but_200_and_503();
        report.keeps("p99", Duration::from_millis(5), Duration::from_millis(5));
        assert!(report.holds());
        report.none_fails();
        assert!(!report.holds());
        assert!(report.lines().contains("reads that failed: 1 of 2, at most 0: DOES NOT HOLD"));
        assert_eq!(report.json()["bars"][2]["holds"], false);
        assert!(!Report::failed("kill", "nobody to kill").holds());
    }
}
