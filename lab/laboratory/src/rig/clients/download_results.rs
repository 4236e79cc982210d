//! Results of downloads, and figures over many.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::samples::quantile;
use crate::rig::report::{Column, Report};

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
    pub(crate) status: u16,
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
    pub(crate) path: String,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
    /// Whether it resumes an earlier attempt.
    pub(crate) is_resumed: bool,
    pub(crate) outcome: Outcome,
    /// The longest wait for the head or the next bytes.
    pub(crate) pause: Duration,
    /// Bytes of the body received.
    pub(crate) bytes: u64,
    /// Whether a response head was received.
    pub(crate) is_answered: bool,
}

fn figures(results: &[DownloadResult]) -> Vec<Column> {
    let bytes: u64 = results.iter().map(|result| result.bytes).sum();
    vec![
        Column::count("downloads", "downloads", results.len()),
        Column::count("whole", "whole", count(results, |outcome| matches!(outcome, Outcome::Whole))),
        Column::count("refused", "refused", count(results, |outcome| matches!(outcome, Outcome::Refused(_)))),
        Column::count("broken", "broken", count(results, |outcome| matches!(outcome, Outcome::Broken(_)))),
        Column::count("wrong", "wrong", count(results, |outcome| matches!(outcome, Outcome::Wrong(_)))),
        Column::count("late", "late", count(results, |outcome| matches!(outcome, Outcome::Late))),
        Column::new("MB", "bytes", (bytes / 1_000_000).to_string(), json!(bytes)),
        Column::time("pause p50 ms", "pauseP50Ms", longest_pause(results, 0.5)),
        Column::time("p99", "pauseP99Ms", longest_pause(results, 0.99)),
        Column::time("longest", "pauseLongestMs", longest_pause(results, 1.0)),
    ]
}

fn count(results: &[DownloadResult], test: fn(&Outcome) -> bool) -> usize {
    results.iter().filter(|result| test(&result.outcome)).count()
}

/// The quantile of the downloads' longest waits, for a share between 0 and 1.
pub(crate) fn longest_pause(results: &[DownloadResult], share: f64) -> Duration {
    quantile(results.iter().map(|result| result.pause).collect(), share)
}

impl Report {
    /// Creates a report of downloads, with a message for each kind of failure.
    pub(crate) fn of_downloads(name: &str, results: &[DownloadResult]) -> Self {
        let mut report = Self::new(name, figures(results));
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
    pub(crate) fn none_fails(&mut self, results: &[DownloadResult]) {
        let failed = count(results, |outcome| *outcome != Outcome::Whole);
        self.bar_none_of("downloads that failed", failed, results.len());
    }

    /// Adds the bar that every download is complete, is refused, or ends with a visible error.
    pub(crate) fn none_is_wrong(&mut self, results: &[DownloadResult]) {
        let wrong = count(results, |outcome| matches!(outcome, Outcome::Wrong(_) | Outcome::Late));
        self.bar_none_of("downloads that were wrong or came to nothing", wrong, results.len());
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
        let json = report.json();
        assert_eq!([&json["downloads"], &json["whole"], &json["bytes"]], [100, 98, 1000]);
        assert_eq!([&json["pauseP99Ms"], &json["pauseLongestMs"]], [500.0, 700.0]);
        assert_eq!(report.messages, ["1 times: broken: closed", "1 times: refused: 503 later"]);
        report.none_is_wrong(&all);
        assert!(report.holds());
        report.none_fails(&all);
        assert!(!report.holds());
        for outcome in [Outcome::Wrong("byte 7".to_owned()), Outcome::Late] {
            let results = [result(outcome, 1)];
            let mut report = Report::of_downloads("nats", &results);
            report.none_is_wrong(&results);
            assert!(!report.holds());
        }
    }

    #[test]
    fn no_download_at_all_proves_nothing() {
        let mut report = Report::of_downloads("steady", &[]);
        report.none_fails(&[]);
        assert!(!report.holds());
    }
}
