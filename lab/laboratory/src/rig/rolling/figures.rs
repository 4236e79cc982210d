//! Figures of a period of a rolling restart, as clients see it.

use std::time::Duration;

use tokio::time::Instant;

use crate::rig::{
    clients::{
        download_results::{DownloadResult, Outcome},
        load::Load,
        samples,
        submitters::IndefiniteSubmission,
    },
    report::{self, Column},
};

/// The report of a period.
pub(super) type Report = report::Report<Figures>;

/// Figures of a period.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Beginning and end on the clock of the load.
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// Beginning and end; `None` for the whole run.
    pub(super) when: Option<(Instant, Instant)>,
    pub(super) reads: samples::Figures,
    /// Downloads in progress at the beginning.
    pub(super) reading: usize,
    /// Downloads that ended in the period, and those of them that were not complete.
    downloads: usize,
    broken: usize,
    /// Submissions that ended in the period without a definite answer.
    indefinite: usize,
}

impl Figures {
    /// Computes the figures of reads in a period.
    pub(super) fn of(load: &Load, from: Duration, to: Duration) -> Self {
        Self { from, to, reads: samples::Figures::of(&load.samples(from, to), from, to), ..Self::default() }
    }

    /// Adds the counts of downloads and submissions that ended in the period.
    pub(super) fn count(&mut self, attempts: &[DownloadResult], indefinite: &[IndefiniteSubmission]) {
        let is_in = |moment: Instant| self.when.is_none_or(|(from, to)| moment >= from && moment < to);
        let ended = attempts.iter().filter(|attempt| is_in(attempt.ended));
        let is_broken = |attempt: &&DownloadResult| attempt.outcome != Outcome::Whole;
        (self.downloads, self.broken) = (ended.clone().count(), ended.filter(is_broken).count());
        self.indefinite = indefinite.iter().filter(|indefinite| is_in(indefinite.when.1)).count();
    }
}

impl report::Figures for Figures {
    fn columns(&self) -> Vec<Column> {
        let reads = &self.reads;
        vec![
            Column::count("reads", "reads", reads.requests),
            Column::count("failed", "failed", reads.requests - reads.fine),
            Column::count("again", "askedAgain", reads.again),
            Column::time("p50 ms", "p50Ms", reads.p50),
            Column::time("worst p99", "worstSecondP99Ms", reads.worst_p99),
            Column::time("longest", "longestMs", reads.longest),
            Column::count("downloading", "downloading", self.reading),
            Column::count("downloads", "downloads", self.downloads),
            Column::count("broken", "broken", self.broken),
            Column::count("unsure submissions", "unsureSubmissions", self.indefinite),
        ]
    }
}
