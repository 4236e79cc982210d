//! Figures and bars of a chaos run.

use std::{collections::BTreeMap, time::Duration};

use crate::rig::{
    clients::{
        download_results::Outcome,
        files::LEDGER,
        samples::{self, ReadResult},
        submitters::{IndefiniteSubmission, SubmissionOutcome},
    },
    faults::explanation::{
        FailedRequest, FailureKind, FaultSpan, RequestKind, asked_after, failed_reads, is_explained,
    },
    report::{self, Column, in_ms},
    traffic::{FinishedTraffic, SubmissionResults},
};

/// Longest wait of a download: the edge aborts a stalled one after 30 s (contract X10), plus the time for
/// which an edge is frozen.
const STANDS_STILL_AT_MOST: Duration = Duration::from_secs(40);

/// The report of a run.
pub(super) type Report = report::Report<Vec<Column>>;

/// The figures of a run with this number of faults.
pub(super) fn figures(
    faults: usize,
    traffic: &FinishedTraffic,
    submissions: &SubmissionResults,
    misses: &[FailedRequest],
) -> Vec<Column> {
    let FinishedTraffic { load, end, attempts, files, watches } = traffic;
    let reads = samples::Figures::of(&load.samples(Duration::ZERO, *end), Duration::ZERO, *end);
    let missed = |kinds: &[RequestKind]| misses.iter().filter(|miss| kinds.contains(&miss.kind)).count();
    vec![
        Column::count("acts", "actsDone", faults),
        Column::count("reads", "reads", reads.requests),
        Column::count("missed", "readsMissed", missed(&[RequestKind::Read])),
        Column::time("p50 ms", "p50Ms", reads.p50),
        Column::time("longest", "longestMs", reads.longest),
        Column::count("downloads", "downloads", attempts.len()),
        Column::count("missed", "downloadsMissed", missed(&[RequestKind::History, RequestKind::Ledger])),
        Column::count("whole files", "wholeFiles", files.whole),
        Column::count("submissions", "submissions", submissions.counts.0),
        Column::count("missed", "submissionsMissed", missed(&[RequestKind::Submission])),
        Column::count("streams", "streams", watches.record.streams.len()),
        Column::count("events", "events", watches.record.answers()),
        Column::count("missed", "streamsMissed", missed(&[RequestKind::Watch])),
    ]
}

/// All failed requests.
pub(super) fn misses(traffic: &FinishedTraffic, indefinite: &[IndefiniteSubmission]) -> Vec<FailedRequest> {
    let FinishedTraffic { load, attempts, watches, .. } = traffic;
    let reads = failed_reads(load).into_iter();
    let downloads = attempts.iter().filter_map(|attempt| {
        let failure = match &attempt.outcome {
            Outcome::Whole => return None,
            Outcome::Refused(refusal) if refusal.is_temporary() => FailureKind::Refused,
            Outcome::Broken(_) => FailureKind::Broken,
            Outcome::Refused(_) | Outcome::Wrong(_) | Outcome::Late => FailureKind::Other,
        };
        let kind = if attempt.path == LEDGER { RequestKind::Ledger } else { RequestKind::History };
        let message = format!(
            "{:?} after {} bytes, the longest wait {} ({})",
            attempt.outcome,
            attempt.bytes,
            in_ms(attempt.pause),
            attempt.path
        );
        Some(FailedRequest { kind, failure, when: (attempt.begun, attempt.ended), message })
    });
    let submissions = indefinite.iter().map(|indefinite| {
        let failure = match &indefinite.outcome {
            SubmissionOutcome::Unknown | SubmissionOutcome::NotTaken(_) => FailureKind::Refused,
            SubmissionOutcome::Lost(_) => FailureKind::Broken,
            SubmissionOutcome::Accepted
            | SubmissionOutcome::Refused(_)
            | SubmissionOutcome::Left
            | SubmissionOutcome::Unchecked
            | SubmissionOutcome::Other(_) => FailureKind::Other,
        };
        let message = format!("{:?} {}", indefinite.outcome, indefinite.message);
        FailedRequest { kind: RequestKind::Submission, failure, when: indefinite.when, message }
    });
    reads.chain(downloads).chain(submissions).chain(watches.record.misses()).collect()
}

/// Adds the bars that no read, download or submission got a false answer.
pub(super) fn true_answers(report: &mut Report, traffic: &FinishedTraffic, submissions: &SubmissionResults) {
    let FinishedTraffic { load, end, attempts, .. } = traffic;
    let wrong: Vec<String> = load
        .failed()
        .into_iter()
        .filter(|sample| sample.result == ReadResult::Wrong)
        .filter_map(|sample| sample.message)
        .collect();
    let reads = load.samples(Duration::ZERO, *end).len();
    report.bar(
        format!("reads whose answer cannot be true: {} of {reads}, at most 0", wrong.len()),
        wrong.is_empty() && reads > 0,
    );
    let wrong_bytes: Vec<String> = attempts
        .iter()
        .filter_map(|attempt| match &attempt.outcome {
            Outcome::Wrong(what) => Some(format!("{what} ({})", attempt.path)),
            _ => None,
        })
        .collect();
    report.bar(
        format!(
            "downloads with a wrong byte or a wrong end: {} of {}, at most 0",
            wrong_bytes.len(),
            attempts.len()
        ),
        wrong_bytes.is_empty() && !attempts.is_empty(),
    );
    submissions.agree(report);
    let wait = attempts.iter().map(|attempt| attempt.pause).max().unwrap_or_default();
    report.bar_at_most("the longest wait of a download for its next bytes", wait, STANDS_STILL_AT_MOST);
    report.messages.extend(wrong.into_iter().chain(wrong_bytes));
}

/// Adds the bar that a fault explains every failed request.
pub(super) fn explained(report: &mut Report, misses: &[FailedRequest], spans: &[FaultSpan], after: Duration) {
    let (mut kinds, mut unexplained) = (BTreeMap::<String, usize>::new(), 0);
    let mut latest = Duration::ZERO;
    for miss in misses {
        *kinds.entry(format!("{:?} {:?}", miss.kind, miss.failure)).or_default() += 1;
        if is_explained(miss, spans, after) {
            latest = latest.max(asked_after(miss, spans).unwrap_or_default());
            continue;
        }
        unexplained += 1;
        let since = asked_after(miss, spans).map_or_else(|| "never".to_owned(), in_ms);
        let took = (miss.when.1 - miss.when.0).as_millis();
        report.messages.push(format!(
            "{since} after what explains it, {took} ms: {:?} {:?}: {}",
            miss.kind, miss.failure, miss.message
        ));
    }
    report.bar(
        format!(
            "misses that nothing explains, of {}: {unexplained}, at most 0 (a fault that is over explains what is asked \
             for {} more)",
            misses.len(),
            in_ms(after)
        ),
        unexplained == 0,
    );
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    report.notes.push(format!("missed: {}", kinds.join(", ")));
    report
        .notes
        .push(format!("the latest that is explained was asked {} after its fault was over", in_ms(latest)));
}
