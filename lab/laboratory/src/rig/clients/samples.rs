//! Results of read requests, and figures over a period of time. Uses no clock.

use std::{fmt, time::Duration};

use crate::rig::report::{Column, Report};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// A complete answer.
    Status { status: u16, has_retry_after: bool },
    /// A wrong answer: required content is missing, or its height is lower than an earlier one's.
    Wrong,
    /// The connection broke.
    Broken,
    /// No answer in time.
    Silence,
}

impl fmt::Display for ReadResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, has_retry_after: true } => write!(f, "{status} with Retry-After"),
            Self::Status { status, has_retry_after: false } => write!(f, "{status}"),
            Self::Wrong => f.write_str("WRONG"),
            Self::Broken => f.write_str("broken"),
            Self::Silence => f.write_str("silence"),
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// When it was due, since the start of the load.
    pub(crate) due: Duration,
    /// Time from then to its end.
    pub(crate) took: Duration,
    pub(crate) result: ReadResult,
    /// The block height that the answer names.
    pub(crate) height: Option<u64>,
    /// Whether it was repeated because the idle connection had been closed.
    pub(crate) again: bool,
    /// Its failure text, unless it got a correct 200.
    pub(crate) message: Option<String>,
}

impl Sample {
    /// Whether it got a correct 200 or 304.
    pub(crate) fn is_fine(&self) -> bool {
        matches!(self.result, ReadResult::Status { status: 200 | 304, .. })
    }

    /// Whether it got a 503 with `Retry-After`.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.result, ReadResult::Status { status: 503, has_retry_after: true })
    }
}

/// Figures of the requests that were due in a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) requests: usize,
    /// Requests with a correct 200.
    pub(crate) fine: usize,
    /// Requests with a 503 and `Retry-After`.
    pub(crate) refused: usize,
    /// All other requests.
    pub(crate) failed: usize,
    /// Requests repeated over a new connection.
    pub(crate) again: usize,
    pub(crate) p50: Duration,
    /// 99th percentile of the latency in the worst second.
    pub(crate) worst_p99: Duration,
    pub(crate) longest: Duration,
}

impl Figures {
    /// Computes the figures of samples in `from..to`. An incomplete last second is part of the one before.
    pub(crate) fn of(samples: &[Sample], from: Duration, to: Duration) -> Self {
        let seconds = usize::try_from(to.saturating_sub(from).as_secs()).unwrap_or(usize::MAX).max(1);
        let mut by_second: Vec<Vec<Duration>> = vec![Vec::new(); seconds];
        for sample in samples {
            let second = usize::try_from(sample.due.saturating_sub(from).as_secs()).unwrap_or(usize::MAX);
            by_second[second.min(seconds - 1)].push(sample.took);
        }
        let worst_p99 = by_second.into_iter().map(|took| quantile(took, 0.99)).max().unwrap_or_default();
        let count = |test: &dyn Fn(&Sample) -> bool| samples.iter().filter(|sample| test(sample)).count();
        let (fine, refused) = (count(&Sample::is_fine), count(&Sample::is_refused));
        Self {
            requests: samples.len(),
            fine,
            refused,
            failed: samples.len() - fine - refused,
            again: count(&|sample| sample.again),
            p50: latency(samples, 0.5),
            worst_p99,
            longest: latency(samples, 1.0),
        }
    }

    /// The report of a phase with these figures.
    pub(crate) fn report(&self, name: impl Into<String>) -> Report {
        Report::new(name, self.columns())
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::count("reads", "requests", self.requests),
            Column::count("200", "ok", self.fine),
            Column::count("503", "refused", self.refused),
            Column::count("failed", "failed", self.failed),
            Column::count("again", "askedAgain", self.again),
            Column::time("p50 ms", "p50Ms", self.p50),
            Column::time("worst p99", "worstSecondP99Ms", self.worst_p99),
            Column::time("longest", "longestMs", self.longest),
        ]
    }

    /// Adds the bar that every request gets a correct 200.
    pub(crate) fn none_fails(&self, report: &mut Report) {
        let lost = self.requests - self.fine;
        report.bar(format!("reads that failed: {lost} of {}, at most 0", self.requests), lost == 0);
    }

    /// Adds the bar that every request gets a correct 200, or a 503 with `Retry-After`.
    pub(crate) fn none_but_200_and_503(&self, report: &mut Report) {
        report.bar_none("answers other than 200, and 503 with Retry-After", self.failed);
    }
}

/// The quantile of times for a share between 0 and 1.
pub(crate) fn quantile(mut took: Vec<Duration>, share: f64) -> Duration {
    took.sort_unstable();
    let last = took.len().saturating_sub(1);
    took.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}

/// The quantile of the latencies, for a share between 0 and 1.
pub(crate) fn latency(samples: &[Sample], share: f64) -> Duration {
    quantile(samples.iter().map(|sample| sample.took).collect(), share)
}

/// Time from a moment to when the last request was due that failed or took longer than `within`.
pub(crate) fn normal_after(samples: &[Sample], moment: Duration, within: Duration) -> Duration {
    let odd = samples.iter().filter(|sample| !sample.is_fine() || sample.took > within);
    odd.map(|sample| sample.due.saturating_sub(moment)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(due_ms: u64, took_ms: u64, status: u16) -> Sample {
        let (due, took) = (Duration::from_millis(due_ms), Duration::from_millis(took_ms));
        let result = ReadResult::Status { status, has_retry_after: status == 503 };
        Sample { due, took, result, height: None, again: false, message: None }
    }

    #[test]
    fn the_worst_second_counts_and_a_broken_one_belongs_to_the_one_before() {
        let mut samples: Vec<Sample> = (0..30).map(|n| sample(1000 + n * 100, 1, 200)).collect();
        samples[12].took = Duration::from_millis(900);
        samples.push(sample(4050, 700, 503));
        let figures = Figures::of(&samples, Duration::from_secs(1), Duration::from_millis(4500));
        assert_eq!((figures.requests, figures.fine, figures.refused, figures.failed), (31, 30, 1, 0));
        assert_eq!(figures.worst_p99, Duration::from_millis(900));
        assert_eq!(figures.p50, Duration::from_millis(1));
        assert_eq!(Figures::of(&[], Duration::ZERO, Duration::ZERO).requests, 0);
    }

    #[test]
    fn refusals_are_polite_and_still_no_answers() {
        let figures = Figures { requests: 2, fine: 1, refused: 1, ..Figures::default() };
        let mut report = figures.report("kill");
        figures.none_but_200_and_503(&mut report);
        assert!(report.holds());
        figures.none_fails(&mut report);
        assert!(!report.holds());
        assert!(report.lines().contains("reads that failed: 1 of 2, at most 0: DOES NOT HOLD"));
    }

    #[test]
    fn a_refusal_without_a_time_to_come_again_is_a_failure() {
        let mut rude = sample(0, 1, 503);
        rude.result = ReadResult::Status { status: 503, has_retry_after: false };
        let figures = Figures::of(&[rude, sample(0, 1, 404)], Duration::ZERO, Duration::ZERO);
        assert_eq!((figures.refused, figures.failed), (0, 2));
    }

    #[test]
    fn service_is_normal_after_the_last_request_that_was_refused_or_slow() {
        let samples =
            [sample(900, 1, 200), sample(1500, 1, 503), sample(1700, 300, 200), sample(2000, 9, 200)];
        let after = |within| normal_after(&samples, Duration::from_secs(1), Duration::from_millis(within));
        assert_eq!(after(1000), Duration::from_millis(500));
        assert_eq!(after(100), Duration::from_millis(700));
        assert_eq!(
            normal_after(&samples[3..], Duration::from_secs(1), Duration::from_secs(1)),
            Duration::ZERO
        );
    }
}
