//! Checks the streams of a run independently of their content. No I/O.

use std::time::Duration;

use tokio::time::Instant;

use super::record::{ReceivedState, State, Stream, StreamEnd, WatchRecord};
use crate::rig::faults::explanation::{FailedRequest, FailureKind, RequestKind};

/// Longest time without a stream while an edge is available.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A time in which a client had no stream.
#[derive(Clone, Debug)]
pub(crate) struct Absence {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    message: String,
}

impl Absence {
    pub(crate) fn length(&self) -> Duration {
        self.to - self.from
    }

    /// The absence as a failed request of this length.
    fn failed(&self) -> FailedRequest {
        let message = format!("no stream for {:?}: {}", self.length(), self.message);
        failed_request(FailureKind::Refused, (self.from, self.to), message)
    }
}

fn failed_request(failure: FailureKind, when: (Instant, Instant), message: String) -> FailedRequest {
    FailedRequest { kind: RequestKind::Watch, failure, when, message }
}

impl WatchRecord {
    fn path(&self, stream: &Stream) -> String {
        self.watches[stream.client].reads.join(", ")
    }

    /// All streams that ended, and all attempts that failed.
    pub(crate) fn failed(&self) -> Vec<FailedRequest> {
        let failure = |stream: &Stream| {
            let (ended, end) = stream.end.as_ref()?;
            let failure = match end {
                StreamEnd::Refused(refusal) if refusal.is_temporary() => FailureKind::Refused,
                StreamEnd::Broken(_) | StreamEnd::Unconnected(_) => FailureKind::Broken,
                StreamEnd::Regular => FailureKind::Ended,
                StreamEnd::Refused(_) | StreamEnd::Silent | StreamEnd::Malformed(_) => FailureKind::Other,
            };
            // The cause of an ended stream is at its end.
            let from = if stream.opened.is_some() { *ended } else { stream.asked };
            Some(failed_request(failure, (from, *ended), format!("{end:?} ({})", self.path(stream))))
        };
        self.streams.iter().filter_map(failure).collect()
    }

    pub(crate) fn problems(&self) -> Vec<FailedRequest> {
        let received = self
            .streams
            .iter()
            .flat_map(|stream| stream.received.iter().map(move |received| (stream, received)));
        let problems = received.filter_map(|(stream, received)| match &received.what {
            State::Problem(text) => {
                let path = &self.watches[stream.client].reads[received.read];
                let message = format!("problem received: {text} ({path})");
                Some(failed_request(FailureKind::Refused, (received.at, received.at), message))
            }
            State::Answer { .. } => None,
        });
        problems.collect()
    }

    /// The times without a stream between two streams of a client.
    pub(crate) fn absences(&self) -> Vec<Absence> {
        let mut absences = Vec::new();
        for (_, streams) in self.by_client() {
            let mut left: Option<(Instant, String)> = None;
            for stream in streams {
                if let (Some((from, message)), Some(to)) = (&left, stream.opened) {
                    absences.push(Absence { from: *from, to, message: message.clone() });
                    left = None;
                }
                if let Some((at, end)) = &stream.end {
                    left.get_or_insert_with(|| (*at, format!("{end:?} ({})", self.path(stream))));
                }
            }
        }
        absences
    }

    /// Failures that need a fault as their cause: streams that ended, failed attempts, received problems, and
    /// clients without a stream for too long.
    pub(crate) fn misses(&self) -> Vec<FailedRequest> {
        let absences = self.absences();
        let long = absences.iter().filter(|absence| absence.length() > BACK_WITHIN).map(Absence::failed);
        [self.failed(), self.problems(), long.collect()].concat()
    }

    /// Contradictions of the contract: a height that decreases, a state that is sent twice. `may_have_changed`:
    /// whether the answer to a path may have changed in this period without a new block.
    pub(crate) fn contradictions(
        &self,
        may_have_changed: impl Fn(&str, Instant, Instant) -> bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for (client, streams) in self.by_client() {
            let reads = &self.watches[client].reads;
            // By read, the last state of earlier streams.
            let mut before: Vec<Option<&ReceivedState>> = vec![None; reads.len()];
            for stream in streams {
                let mut heights = vec![stream.last_height; reads.len()];
                let mut last: Vec<Option<&ReceivedState>> = vec![None; reads.len()];
                for received in &stream.received {
                    let mut say = |what: &str, other: &dyn std::fmt::Debug| {
                        let path = &reads[received.read];
                        found.push(format!(
                            "{what}: {:?} after {other:?} to client {client} ({path})",
                            received.what
                        ));
                    };
                    if last[received.read].is_some_and(|last| is_same(&last.what, &received.what)) {
                        say("the same state is sent twice", &last[received.read]);
                    }
                    if let State::Answer { height, .. } = received.what {
                        if heights[received.read] > Some(height) {
                            say("the height decreases", &heights[received.read]);
                        }
                        let is_again = |old: &&ReceivedState| {
                            old.what == received.what && stream.last_height == Some(height)
                        };
                        if let Some(old) = before[received.read].filter(is_again)
                            && last[received.read].is_none()
                            && !may_have_changed(&reads[received.read], old.at, received.at)
                        {
                            say("a resumed client is sent the state that it has", &old.what);
                        }
                        heights[received.read] = heights[received.read].max(Some(height));
                    }
                    last[received.read] = Some(received);
                }
                for (before, last) in before.iter_mut().zip(last) {
                    *before = last.filter(|last| matches!(last.what, State::Answer { .. })).or(*before);
                }
            }
        }
        found
    }
}

/// Whether two states have the same body.
fn is_same(one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Answer { content: one, .. }, State::Answer { content: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::record::{Over, Watch},
        *,
    };

    fn stream(last_height: Option<u64>, received: &[(u64, usize)]) -> Stream {
        let now = Instant::now();
        let received = received.iter().map(|(height, content)| {
            let what = match height {
                0 => State::Problem(content.to_string()),
                height => State::Answer { height: *height, content: *content },
            };
            ReceivedState { read: 0, at: now, what }
        });
        let (opened, end) = (Some(now), Some((now + Duration::from_secs(7), StreamEnd::Regular)));
        Stream { client: 0, last_height, asked: now, opened, received: received.collect(), end }
    }

    fn record(streams: Vec<Stream>) -> WatchRecord {
        let watches = vec![Watch { reads: vec!["/read".into()], over: Over::EventStream }];
        WatchRecord { watches, streams, ..WatchRecord::default() }
    }

    #[test]
    fn a_stream_shows_new_states_at_heights_that_do_not_fall() {
        type Streams<'a> = &'a [(Option<u64>, &'a [(u64, usize)])];
        let found = |streams: Streams<'_>, changed| {
            let streams = streams.iter().map(|(last, received)| stream(*last, received)).collect();
            record(streams).contradictions(|_, _, _| changed).len()
        };
        assert_eq!(found(&[(None, &[(4, 1), (4, 2), (0, 9), (5, 2), (7, 1)])], false), 0);
        assert_eq!(found(&[(None, &[(5, 1), (4, 2)])], false), 1, "the height falls");
        assert_eq!(found(&[(None, &[(4, 1), (5, 1)])], false), 1, "the same twice");
        assert_eq!(found(&[(None, &[(4, 1), (0, 3), (0, 3)])], false), 1, "the same problem twice");
        let back = |received| found(&[(None, &[(4, 1)]), (Some(4), received)], false);
        assert_eq!((back(&[(5, 1)]), back(&[(4, 2)]), back(&[(4, 1)]), back(&[(3, 2)])), (0, 0, 1, 1));
        assert_eq!(found(&[(None, &[(4, 1)]), (Some(4), &[(4, 1)])], true), 0, "it may have changed");
        assert_eq!(found(&[(None, &[(4, 1)]), (None, &[(3, 1)])], false), 0, "another beginning");
    }

    #[test]
    fn a_client_is_absent_from_the_end_of_a_stream_to_the_next_that_opens() {
        let mut streams = vec![stream(None, &[(4, 1)]), stream(Some(4), &[]), stream(Some(4), &[])];
        let begun = streams[0].asked;
        let at = |seconds| begun + Duration::from_secs(seconds);
        (streams[1].asked, streams[1].opened) = (at(8), None);
        streams[1].end = Some((at(9), StreamEnd::Broken("reset".to_owned())));
        (streams[2].opened, streams[2].end) = (Some(at(10)), None);
        let record = record(streams);
        let absences: Vec<_> = record.absences().iter().map(Absence::length).collect();
        assert_eq!(absences, [at(10) - (at(7))]);
        let failed: Vec<_> = record.failed().iter().map(|failed| (failed.failure, failed.when)).collect();
        assert_eq!(failed[..], [(FailureKind::Ended, (at(7), at(7))), (FailureKind::Broken, (at(8), at(9)))]);
        assert!(record.problems().is_empty() && record.answers() == 1);
    }
}
