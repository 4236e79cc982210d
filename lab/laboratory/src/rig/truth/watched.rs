//! Checks the states that watchers received against the history of the store.

use std::{sync::Arc, time::Duration};

use super::{AGE, LIMITS, blocks_store, history::History, judge::AGE_AWAY, may_cause};
use crate::rig::{
    clients::samples::Report,
    faults::explanation::{FailedRequest, FailureKind, FaultSpan, is_explained},
    watching::{
        judge::BACK_WITHIN,
        watchers::{MAX_READS, Over, State, Watch, WatchRecord},
    },
};

/// Time from the read of an answer in the store to its receipt by the watching client.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// Two clients for every question, and two for several questions together: over an event stream and over a
/// WebSocket.
pub(super) fn watches(history: &History) -> Vec<Watch> {
    let reads: Vec<Arc<str>> = history.questions.iter().map(|path| path.as_str().into()).collect();
    let together = reads.iter().map(std::slice::from_ref).chain(reads.chunks(MAX_READS));
    let watch = |reads: &[Arc<str>], over| Watch { reads: reads.to_vec(), over };
    let both = [Over::EventStream, Over::WebSocket];
    together.flat_map(|reads| both.map(|over| watch(reads, over))).collect()
}

/// Adds the bars about watchers.
pub(super) fn watches_hold(
    report: &mut Report,
    history: &History,
    record: &WatchRecord,
    differences: &[String],
    spans: &[FaultSpan],
    (after, slack): (Duration, u32),
) {
    let (wrong, old, longest) = judge(history, record, spans, after, slack);
    let received = record.answers();
    report.bar(
        format!(
            "states sent to {} watchers that the store never had, out of order, or too old: {} of {received}, at most \
             0",
            record.watches.len(),
            wrong.len() + old.len()
        ),
        wrong.is_empty() && old.is_empty() && received > 0,
    );
    report.bar(
        format!("watchers that end with another answer than a plain read: {}, at most 0", differences.len()),
        differences.is_empty(),
    );
    let unexplained = unexplained(record, spans, after);
    report.bar(
        format!(
            "streams that ended, were rejected or took more than {BACK_WITHIN:?} to resume, and problems received, \
             that no fault explains: {} of {}, at most 0",
            unexplained.len(),
            record.streams.len()
        ),
        unexplained.is_empty(),
    );
    let problems = record.problems().len();
    report.notes.push(format!(
        "{received} states and {problems} problems on {} streams; greatest age with the store available: {longest:?}",
        record.streams.len()
    ));
    report
        .messages
        .extend(wrong.into_iter().chain(old).chain(differences.iter().cloned()).chain(unexplained));
}

/// The wrong states, the late ones, and the greatest age with the store available.
fn judge(
    history: &History,
    record: &WatchRecord,
    spans: &[FaultSpan],
    after: Duration,
    slack: u32,
) -> (Vec<String>, Vec<String>, Duration) {
    let question_of = |path: &str| history.questions.iter().position(|question| question == path);
    let may_have_changed = |path: &str, from: tokio::time::Instant, to: tokio::time::Instant| {
        // Another edge may have had the previous answer.
        let from = from.checked_sub(AGE + ON_ITS_WAY).unwrap_or(from);
        question_of(path).is_none_or(|question| !history.is_unchanged(question, from.into(), to.into()))
    };
    let (mut wrong, mut old) = (record.contradictions(may_have_changed), Vec::new());
    let mut longest = Duration::ZERO;
    let outages: Vec<&FaultSpan> = spans.iter().filter(|span| blocks_store(span.fault)).collect();
    for stream in &record.streams {
        let reads = &record.watches[stream.client].reads;
        let mut positions = vec![0; reads.len()];
        for received in &stream.received {
            let State::Answer { height, content } = received.what else { continue };
            let path = &reads[received.read];
            let Some(question) = question_of(path) else { continue };
            let from = positions[received.read];
            match history.find_event((question, height, content), from, received.at.into()) {
                Err(what) => wrong.push(format!("{path} to client {}: {what}", stream.client)),
                Ok((place, age)) => {
                    positions[received.read] = place;
                    let is_away = outages
                        .iter()
                        .any(|span| span.when.0 <= received.at && received.at <= span.when.1 + after);
                    let most = if is_away { AGE_AWAY } else { AGE } + ON_ITS_WAY * slack;
                    longest = if is_away { longest } else { longest.max(age) };
                    if age > most {
                        old.push(format!(
                            "{path} to client {}: block {height}, too old by {age:?}",
                            stream.client
                        ));
                    }
                }
            }
        }
    }
    (wrong, old, longest)
}

fn unexplained(record: &WatchRecord, spans: &[FaultSpan], after: Duration) -> Vec<String> {
    let is_unexplained = |miss: &&FailedRequest| {
        let is_limits = miss.message.contains(LIMITS);
        let causes = spans.iter().filter(|span| match miss.failure {
            // An edge ends its streams in order only when it stops.
            FailureKind::Ended => true,
            failure => may_cause(span.fault, failure, is_limits),
        });
        !is_explained(miss, &causes.copied().collect::<Vec<_>>(), after)
    };
    record
        .misses()
        .iter()
        .filter(is_unexplained)
        .map(|miss| format!("{:?}: {}", miss.failure, miss.message))
        .collect()
}
