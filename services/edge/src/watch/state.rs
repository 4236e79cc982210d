//! What a live query knows of its answer, and what a watcher has of it. No I/O.

use std::sync::Arc;

use mesh_problem::Problem;
use tokio::time::Instant;

use crate::{
    ask::cache::Question,
    respond::answer::Answer,
    watch::event::{Emission, Event, digest},
};

/// The newest state of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Latest {
    event: Arc<Event>,
    /// Height at which the last look found it.
    height: u64,
    /// Time of that block, nanoseconds since the Unix epoch; 0 if the answer does not tell.
    time_ns: i64,
    /// When the last look asked for it.
    asked_at: Instant,
    /// When it came.
    came_at: Instant,
    /// Number of the state, counted from 1.
    number: u64,
    /// Looks so far.
    looks: u64,
    /// How often the heights began anew, because the store was set back.
    resets: u64,
}

impl Latest {
    /// The state after the first look, at this height.
    pub(super) fn new(question: &Question, answer: &Answer, height: u64, now: Instant) -> Self {
        let event = Arc::new(Event::of_answer(question, answer, height));
        let (asked_at, time_ns) = (answer.asked_at, answer.time_ns());
        Self { event, height, time_ns, asked_at, came_at: now, number: 1, looks: 1, resets: 0 }
    }

    /// Number of the state, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Height at which the last look found it.
    pub(super) fn height(&self) -> u64 {
        self.height
    }

    /// Records the answer of a look, read at this height; `is_set_back`: the first one of a store that was set
    /// back. Returns whether there is a new state.
    pub(super) fn publish(
        &mut self,
        question: &Question,
        answer: &Answer,
        height: u64,
        now: Instant,
        is_set_back: bool,
    ) -> bool {
        self.looks += 1;
        // One that was asked for before the last one came, by a plain read or before the store went away, may
        // have seen the store before it: rows that come late change an answer at the same height.
        if height <= self.height && answer.asked_at <= self.came_at && !is_set_back {
            return false;
        }
        let is_reset = is_set_back || height < self.event.height;
        (self.height, self.time_ns) = (height, answer.time_ns());
        (self.asked_at, self.came_at) = (answer.asked_at, now);
        self.resets += u64::from(is_reset);
        let is_new = is_reset || self.event.digest != digest(answer);
        is_new && self.replace(Event::of_answer(question, answer, height))
    }

    /// Records that there is no answer at present. Returns whether that is new.
    pub(super) fn publish_problem(
        &mut self,
        question: &Question,
        problem: &Problem,
        asked_at: Instant,
    ) -> bool {
        self.looks += 1;
        let event = Event::of_problem(question, problem, self.event.height, asked_at);
        event.digest != self.event.digest && self.replace(event)
    }

    fn replace(&mut self, event: Event) -> bool {
        self.event = Arc::new(event);
        self.number += 1;
        true
    }
}

/// What a watcher was sent last, and what it is sent next (W1-W3, W6).
#[derive(Debug)]
pub(crate) struct Progress {
    height: u64,
    /// At the same height, what was asked for later is newer.
    asked_at: Instant,
    /// `None` for a client that has come back with this height and gets the next state in any case.
    digest: Option<u64>,
    /// Number of the state, to count those that were skipped.
    number: u64,
    resets: u64,
    /// Number of looks when an event was held back because the head had moved.
    held_at: Option<u64>,
}

/// What a watcher is sent next.
#[derive(Debug)]
pub(crate) enum Next {
    /// An event, in the place of so many others.
    Send(Emission, u64),
    /// Nothing: it has the newest state.
    Nothing,
    /// The head has moved; the next look is awaited.
    Hold,
    /// The store was set back: heights never fall on a stream, so it ends.
    End,
}

impl Progress {
    /// A watcher who begins with an answer that was read at this height, or has come back with the height
    /// `last_id` and gets nothing before the head is above it (W6). Returns its first event, if any.
    pub(super) fn begin(
        latest: &Latest,
        question: &Question,
        answer: &Answer,
        height: u64,
        last_id: Option<u64>,
        now: Instant,
    ) -> (Self, Option<Emission>) {
        // Only what is asked for from now on is certainly newer.
        let (number, resets, asked_at) = (latest.number, latest.resets, now);
        if let Some(height) = last_id.filter(|last_id| *last_id >= height) {
            return (Self { height, asked_at, digest: None, number, resets, held_at: None }, None);
        }
        let digest = digest(answer);
        let is_shared = latest.event.digest == digest && latest.event.height <= height;
        let event = match is_shared {
            true => Arc::clone(&latest.event),
            false => Arc::new(Event::of_answer(question, answer, height)),
        };
        let progress = Self { height, asked_at, digest: Some(digest), number, resets, held_at: None };
        (progress, Some(Emission { event, height, time_ns: answer.time_ns() }))
    }

    /// Whether the last look is certainly newer than what the watcher has: at a newer block, or asked for later. A
    /// client that has come back with the height of the newest block has what that block began with, so that
    /// only rows that came late are newer.
    fn is_passed(&self, latest: &Latest) -> bool {
        match self.digest {
            Some(_) => (latest.height, latest.asked_at) > (self.height, self.asked_at),
            None => (latest.height, latest.number) > (self.height, self.number),
        }
    }

    /// The height of the last event.
    pub(super) fn height(&self) -> u64 {
        self.height
    }

    /// What the watcher is sent next, while the head is at this height. An event counts as sent.
    pub(super) fn next(&mut self, latest: &Latest, head: u64) -> Next {
        let event = &latest.event;
        if latest.resets != self.resets {
            return Next::End;
        }
        if event.is_problem() {
            if self.digest == Some(event.digest) || event.asked_at <= self.asked_at {
                return self.nothing();
            }
        } else if self.digest == Some(event.digest) {
            return self.nothing();
        } else if !self.is_passed(latest) {
            return Next::Hold;
        }
        // A plain read would be newer now (W2). What the next look leaves is sent in any case, so that nobody
        // waits for ever behind fast blocks.
        if !event.is_problem()
            && latest.height < head
            && *self.held_at.get_or_insert(latest.looks) == latest.looks
        {
            return Next::Hold;
        }
        self.held_at = None;
        let skipped = latest.number.saturating_sub(self.number + 1);
        self.number = latest.number;
        let mut time_ns = 0;
        if !event.is_problem() {
            // The last look found that it still is the answer there.
            (self.height, time_ns) = (latest.height, latest.time_ns);
        }
        self.asked_at = if event.is_problem() { event.asked_at } else { latest.asked_at };
        // A client that has come back still gets the state of now after a problem.
        if self.digest.is_some() || !event.is_problem() {
            self.digest = Some(event.digest);
        }
        Next::Send(Emission { event: Arc::clone(event), height: self.height, time_ns }, skipped)
    }

    /// Nothing to send, so that nothing is held back any more.
    fn nothing(&mut self) -> Next {
        self.held_at = None;
        Next::Nothing
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use mesh_bus::{Encoding, Format, Head};

    use super::*;
    use crate::ask::cache::tests::answer;

    /// A question that is looked at by hand, once a second.
    struct Looks {
        question: Question,
        template: Answer,
        latest: Latest,
        now: Instant,
    }

    impl Looks {
        fn new() -> Self {
            let encoding = Encoding { format: Format::Json, gzip: false };
            let question = Question { operation: "ListThings", encoding, message: Bytes::new() };
            let (now, template) = (Instant::now(), answer(1, Instant::now(), 0));
            let first = said(&template, "a", 1, now);
            let latest = Latest::new(&question, &first, 1, now);
            Self { question, template, latest, now }
        }

        /// A watcher who begins with the newest state.
        fn watcher(&self) -> Progress {
            let Latest { event, height, .. } = &self.latest;
            let newest = Answer { parts: vec![data(event)], ..said(&self.template, "", *height, self.now) };
            Progress::begin(&self.latest, &self.question, &newest, *height, None, self.now).0
        }

        fn look(&mut self, text: &'static str, height: u64, is_set_back: bool) {
            self.now += Duration::from_secs(1);
            let answer = said(&self.template, text, height, self.now);
            self.latest.publish(&self.question, &answer, height, self.now, is_set_back);
        }
    }

    fn said(template: &Answer, text: &'static str, height: u64, asked_at: Instant) -> Answer {
        Answer {
            head: Some(Head { height, time_ns: height as i64 * 10 }),
            etag: None,
            headers: http::HeaderMap::new(),
            parts: vec![text.into()],
            asked_at,
            metrics: Arc::clone(&template.metrics),
        }
    }

    fn data(event: &Arc<Event>) -> Bytes {
        let emission = Emission { event: Arc::clone(event), height: event.height, time_ns: event.time_ns };
        let text = String::from_utf8(emission.bytes(None).concat()).unwrap();
        text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned().into()
    }

    /// The data, height and time of what comes next; else what is done.
    fn next(progress: &mut Progress, looks: &Looks, head: u64) -> Result<(Bytes, u64, i64), String> {
        match progress.next(&looks.latest, head) {
            Next::Send(emission, _) => Ok((data(&emission.event), emission.height, emission.time_ns)),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn each_overtaken_state_is_held_until_the_next_look() {
        let mut looks = Looks::new();
        let mut watcher = looks.watcher();
        looks.look("b", 2, false);
        assert_eq!(next(&mut watcher, &looks, 3), Err("Hold".to_owned()));
        looks.look("a", 3, false);
        assert_eq!(next(&mut watcher, &looks, 3), Err("Nothing".to_owned()), "it has that one");
        looks.look("c", 4, false);
        assert_eq!(next(&mut watcher, &looks, 5), Err("Hold".to_owned()), "held anew");
        looks.look("c", 5, false);
        assert_eq!(next(&mut watcher, &looks, 6), Ok(("c".into(), 5, 50)), "once");
    }

    #[test]
    fn a_store_that_is_set_back_ends_all_watches_of_before() {
        let mut looks = Looks::new();
        let mut early = looks.watcher();
        looks.look("a", 9, false);
        let mut late = looks.watcher();
        looks.look("a", 5, true);
        for watcher in [&mut early, &mut late] {
            assert_eq!(next(watcher, &looks, 5), Err("End".to_owned()));
        }
        let mut new = looks.watcher();
        looks.look("b", 6, false);
        assert_eq!(next(&mut new, &looks, 6), Ok(("b".into(), 6, 60)));
    }
}
