//! What is wrong with the streams of a run, whatever the answers are. No I/O.

use std::time::Duration;

use tokio::time::Instant;

use super::watchers::{State, Stream, StreamEnd, Told, WatchRecord};
use crate::rig::faults::explanation::{FailedRequest, FailureKind, RequestKind};

/// How soon a client must have a stream again when an edge is there.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A time in which a client had no stream.
#[derive(Clone, Debug)]
pub(crate) struct Absence {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    message: String,
}

impl Absence {
    /// How long it took.
    pub(crate) fn length(&self) -> Duration {
        self.to - self.from
    }

    /// The absence as a request that failed for so long.
    pub(crate) fn failed(&self) -> FailedRequest {
        let message = format!("no stream for {:?}: {}", self.length(), self.message);
        failed_request(FailureKind::Refused, (self.from, self.to), message)
    }
}

fn failed_request(failure: FailureKind, when: (Instant, Instant), message: String) -> FailedRequest {
    FailedRequest { kind: RequestKind::Watch, failure, when, message }
}

impl WatchRecord {
    /// Number of answers that were told.
    pub(crate) fn answers(&self) -> usize {
        let is_answer = |told: &&Told| matches!(told.what, State::Answer { .. });
        self.streams.iter().flat_map(|stream| &stream.told).filter(is_answer).count()
    }

    /// The streams of each client, in order of time.
    pub(crate) fn by_client(&self) -> impl Iterator<Item = (usize, Vec<&Stream>)> {
        (0..self.watches.len())
            .map(|client| (client, self.streams.iter().filter(|stream| stream.client == client).collect()))
    }

    fn path(&self, stream: &Stream) -> String {
        self.watches[stream.client].reads.join(", ")
    }

    /// All streams that ended, and all attempts that failed.
    pub(crate) fn failed(&self) -> Vec<FailedRequest> {
        let failed = self.streams.iter().filter_map(|stream| {
            let (ended, end) = stream.end.as_ref()?;
            let failure = match end {
                StreamEnd::Refused(refusal) if refusal.is_temporary() => FailureKind::Refused,
                StreamEnd::Broken(_) => FailureKind::Broken,
                StreamEnd::Regular => FailureKind::Ended,
                StreamEnd::Refused(_) | StreamEnd::Silent | StreamEnd::Malformed(_) => FailureKind::Other,
            };
            // What ends a stream happens when it ends.
            let from = if stream.opened.is_some() { *ended } else { stream.asked };
            Some(failed_request(failure, (from, *ended), format!("{end:?} ({})", self.path(stream))))
        });
        failed.collect()
    }

    /// All problems that were told.
    pub(crate) fn problems(&self) -> Vec<FailedRequest> {
        let told = self.streams.iter().flat_map(|stream| stream.told.iter().map(move |told| (stream, told)));
        let problems = told.filter_map(|(stream, told)| match &told.what {
            State::Problem(text) => {
                let path = &self.watches[stream.client].reads[told.read];
                let message = format!("a problem was told: {text} ({path})");
                Some(failed_request(FailureKind::Refused, (told.at, told.at), message))
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

    /// What contradicts the contract: a height that falls, a state that is told again. `may_have_changed` says
    /// of a path whether its answer may have changed in this time without a new block.
    pub(crate) fn contradictions(
        &self,
        may_have_changed: impl Fn(&str, Instant, Instant) -> bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for (client, streams) in self.by_client() {
            let reads = &self.watches[client].reads;
            // By read, what was told last on earlier streams.
            let mut before: Vec<Option<&Told>> = vec![None; reads.len()];
            for stream in streams {
                let mut heights = vec![stream.last_height; reads.len()];
                let mut last: Vec<Option<&Told>> = vec![None; reads.len()];
                for told in &stream.told {
                    let mut say = |what: &str, other: &dyn std::fmt::Debug| {
                        let path = &reads[told.read];
                        found.push(format!(
                            "{what}: {:?} after {other:?} to client {client} ({path})",
                            told.what
                        ));
                    };
                    if last[told.read].is_some_and(|last| is_same(&last.what, &told.what)) {
                        say("the same is told twice", &last[told.read]);
                    }
                    if let State::Answer { height, .. } = told.what {
                        if heights[told.read] > Some(height) {
                            say("the height falls", &heights[told.read]);
                        }
                        let is_again =
                            |old: &&Told| old.what == told.what && stream.last_height == Some(height);
                        if let Some(old) = before[told.read].filter(is_again)
                            && last[told.read].is_none()
                            && !may_have_changed(&reads[told.read], old.at, told.at)
                        {
                            say("a client that has come back is told what it had", &old.what);
                        }
                        heights[told.read] = heights[told.read].max(Some(height));
                    }
                    last[told.read] = Some(told);
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
    use super::{super::watchers::Watch, *};

    fn stream(last_height: Option<u64>, told: &[(u64, usize)]) -> Stream {
        let now = Instant::now();
        let told = told.iter().map(|(height, content)| {
            let what = match height {
                0 => State::Problem(content.to_string()),
                height => State::Answer { height: *height, content: *content },
            };
            Told { read: 0, at: now, what }
        });
        let (opened, end) = (Some(now), Some((now + Duration::from_secs(7), StreamEnd::Regular)));
        Stream { client: 0, last_height, asked: now, opened, told: told.collect(), end }
    }

    fn record(streams: Vec<Stream>) -> WatchRecord {
        let watches = vec![Watch { reads: vec!["/read".into()] }];
        WatchRecord { watches, streams, counts: (0, 0) }
    }

    #[test]
    fn a_stream_shows_new_states_at_heights_that_do_not_fall() {
        type Streams<'a> = &'a [(Option<u64>, &'a [(u64, usize)])];
        let found = |streams: Streams<'_>, changed| {
            let streams = streams.iter().map(|(last, told)| stream(*last, told)).collect();
            record(streams).contradictions(|_, _, _| changed).len()
        };
        assert_eq!(found(&[(None, &[(4, 1), (4, 2), (0, 9), (5, 2), (7, 1)])], false), 0);
        assert_eq!(found(&[(None, &[(5, 1), (4, 2)])], false), 1, "the height falls");
        assert_eq!(found(&[(None, &[(4, 1), (5, 1)])], false), 1, "the same twice");
        assert_eq!(found(&[(None, &[(4, 1), (0, 3), (0, 3)])], false), 1, "the same problem twice");
        let back = |told| found(&[(None, &[(4, 1)]), (Some(4), told)], false);
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
