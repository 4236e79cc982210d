//! Results of downloads, and figures over many.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::samples::quantile;
use crate::rig::report::{self, Column};

/// The report of a phase of downloads.
pub(crate) type Report = report::Report<Figures>;

/// How a download ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All bytes were correct, with a regular end.
    Whole,
    /// Another status than 200, or 206 for a range.
    Refused(Refusal),
    /// It ended with an error that the client sees.
    Broken(String),
    /// It ended regularly but is incomplete, or has a wrong byte.
    Wrong(String),
    /// It was not finished at its deadline.
    Late,
}

/// An answer that is not the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// Whether it has a `Retry-After` header.
    pub(crate) has_retry_after: bool,
    /// The beginning of its body.
    pub(crate) message: String,
}

impl Refusal {
    /// Whether it is temporary: 429, 503 or 504 with `Retry-After`.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self.status, 429 | 503 | 504) && self.has_retry_after
    }
}

/// The result of one attempt to download a file, or the rest of it.
#[derive(Clone, Debug)]
pub(crate) struct DownloadResult {
    /// Path of the request.
    pub(crate) path: String,
    /// When it was started.
    pub(crate) begun: Instant,
    /// When it ended.
    pub(crate) ended: Instant,
    /// Whether it resumes an earlier attempt.
    pub(crate) is_resumed: bool,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// The longest wait for the head or the next bytes.
    pub(crate) pause: Duration,
    /// Bytes of the body received.
    pub(crate) bytes: u64,
    /// Whether a response head was received.
    pub(crate) is_answered: bool,
}

/// Figures of many downloads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Number of downloads.
    pub(crate) downloads: usize,
    /// Complete and correct downloads.
    pub(crate) whole: usize,
    /// Refused downloads.
    pub(crate) refused: usize,
    /// Downloads that ended with an error.
    pub(crate) broken: usize,
    /// Downloads with wrong bytes or a wrong end.
    pub(crate) wrong: usize,
    /// Downloads not finished in time.
    pub(crate) late: usize,
    /// Bytes received in all.
    pub(crate) bytes: u64,
    /// Median over the downloads' longest waits.
    pub(crate) pause_p50: Duration,
    /// 99th percentile of the downloads' longest waits.
    pub(crate) pause_p99: Duration,
    /// The longest wait of all.
    pub(crate) pause_longest: Duration,
}

impl Figures {
    /// Computes the figures of downloads.
    pub(crate) fn of(results: &[DownloadResult]) -> Self {
        let count =
            |test: fn(&Outcome) -> bool| results.iter().filter(|result| test(&result.outcome)).count();
        let pause = |share| quantile(results.iter().map(|result| result.pause).collect(), share);
        Self {
            downloads: results.len(),
            whole: count(|outcome| matches!(outcome, Outcome::Whole)),
            refused: count(|outcome| matches!(outcome, Outcome::Refused(_))),
            broken: count(|outcome| matches!(outcome, Outcome::Broken(_))),
            wrong: count(|outcome| matches!(outcome, Outcome::Wrong(_))),
            late: count(|outcome| matches!(outcome, Outcome::Late)),
            bytes: results.iter().map(|result| result.bytes).sum(),
            pause_p50: pause(0.5),
            pause_p99: pause(0.99),
            pause_longest: pause(1.0),
        }
    }
}

impl report::Figures for Figures {
    fn columns(&self) -> Vec<Column> {
        vec![
            Column::count("downloads", "downloads", self.downloads),
            Column::count("whole", "whole", self.whole),
            Column::count("refused", "refused", self.refused),
            Column::count("broken", "broken", self.broken),
            Column::count("wrong", "wrong", self.wrong),
            Column::count("late", "late", self.late),
            Column::new("MB", "bytes", (self.bytes / 1_000_000).to_string(), json!(self.bytes)),
            Column::time("pause p50 ms", "pauseP50Ms", self.pause_p50),
            Column::time("p99", "pauseP99Ms", self.pause_p99),
            Column::time("longest", "pauseLongestMs", self.pause_longest),
        ]
    }
}

impl Report {
    /// Creates a report of downloads, with a message for each kind of failure.
    pub(crate) fn of_downloads(name: &str, results: &[DownloadResult]) -> Self {
        let mut report = Self::new(name, Figures::of(results));
        let mut texts: BTreeMap<String, usize> = BTreeMap::new();
        for result in results {
            let text = match &result.outcome {
                Outcome::Whole => continue,
                Outcome::Refused(Refusal { status, message, .. }) => format!("refused: {status} {message}"),
                Outcome::Broken(why) => format!("broken: {why}"),
                Outcome::Wrong(what) => format!("WRONG: {what}"),
                Outcome::Late => "nothing in time".to_owned(),
            };
            *texts.entry(text).or_default() += 1;
        }
        report.messages = texts.iter().map(|(text, count)| format!("{count} times: {text}")).collect();
        report
    }

    /// Adds the bar that every download is complete.
    pub(crate) fn none_fails(&mut self) {
        let Figures { downloads, whole, .. } = self.figures;
        let failed = downloads - whole;
        self.bar(
            format!("downloads that failed: {failed} of {downloads}, at most 0"),
            failed == 0 && downloads > 0,
        );
    }

    /// Adds the bar that every download is complete, is refused, or ends with a visible error.
    pub(crate) fn none_is_wrong(&mut self) {
        let Figures { downloads, wrong, late, .. } = self.figures;
        self.bar(
            format!("downloads that were wrong: {wrong}, or came to nothing: {late}, at most 0"),
            wrong + late == 0 && downloads > 0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(outcome: Outcome, pause_ms: u64) -> DownloadResult {
        let (path, now, pause) = (String::new(), Instant::now(), Duration::from_millis(pause_ms));
        let (begun, ended, is_resumed, is_answered) = (now, now, false, true);
        DownloadResult { path, begun, ended, is_resumed, outcome, pause, bytes: 10, is_answered }
    }

    #[test]
    fn incomplete_downloads_fail_and_only_undetectable_errors_are_wrong() {
        let mut all: Vec<DownloadResult> = (0..98).map(|number| result(Outcome::Whole, number)).collect();
        let refusal = Refusal { status: 503, has_retry_after: true, message: "later".to_owned() };
        all.push(result(Outcome::Refused(refusal), 500));
        all.push(result(Outcome::Broken("closed".to_owned()), 700));
        let mut report = Report::of_downloads("nats", &all);
        assert_eq!((report.figures.downloads, report.figures.whole, report.figures.bytes), (100, 98, 1000));
        assert_eq!(report.figures.pause_p99, Duration::from_millis(500));
        assert_eq!(report.figures.pause_longest, Duration::from_millis(700));
        assert_eq!(report.messages, ["1 times: broken: closed", "1 times: refused: 503 later"]);
        report.none_is_wrong();
        assert!(report.holds());
        report.none_fails();
        assert!(!report.holds());
        for outcome in [Outcome::Wrong("byte 7".to_owned()), Outcome::Late] {
            let mut report = Report::of_downloads("nats", &[result(outcome, 1)]);
            report.none_is_wrong();
            assert!(!report.holds());
        }
    }

    #[test]
    fn no_download_at_all_proves_nothing() {
        let mut report = Report::of_downloads("steady", &[]);
        report.none_fails();
        assert!(!report.holds());
    }
}
