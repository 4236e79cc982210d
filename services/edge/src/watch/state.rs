//! What a live query knows of its answer, and what a watcher has of it. No I/O.

use std::sync::Arc;

use mesh_problem::Problem;
use tokio::time::Instant;

use crate::{
    ask::{cache::Question, heads::HeadStatus},
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
    /// How often the head had been set back when the last look asked.
    resets: u64,
}

impl Latest {
    /// The state after the first look, at this height.
    pub(super) fn new(question: &Question, answer: &Answer, height: u64, resets: u64, now: Instant) -> Self {
        let event = Arc::new(Event::of_answer(question, answer, height));
        let (asked_at, time_ns) = (answer.asked_at, answer.time_ns());
        Self { event, height, time_ns, asked_at, came_at: now, number: 1, looks: 1, resets }
    }

    /// Number of the state, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it is of this head, and not of one that was replaced by a set-back.
    pub(super) fn is_of(&self, head: HeadStatus) -> bool {
        self.resets == head.resets
    }

    /// Records the answer of a look, read at this height; `resets`: how often the head had been set back when it
    /// was asked for. Returns whether there is a new state.
    pub(super) fn publish(
        &mut self,
        question: &Question,
        answer: &Answer,
        height: u64,
        resets: u64,
        now: Instant,
    ) -> bool {
        self.looks += 1;
        let is_reset = resets != self.resets;
        // One that was asked for before the last one came, by a plain read or before the store went away, may
        // have seen the store before it: rows that come late change an answer at the same height.
        let is_older = height < self.height || height == self.height && answer.asked_at <= self.came_at;
        if is_older && !is_reset {
            return false;
        }
        (self.height, self.time_ns) = (height, answer.time_ns());
        (self.asked_at, self.came_at) = (answer.asked_at, now);
        self.resets = resets;
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
    /// `last_id` and gets nothing before the head is above it. One above the head is of a network that was reset
    /// and counts as none (W6). Returns its first event, if any.
    pub(super) fn begin(
        latest: &Latest,
        question: &Question,
        answer: &Answer,
        height: u64,
        head: HeadStatus,
        last_id: Option<u64>,
        now: Instant,
    ) -> (Self, Option<Emission>) {
        // Only what is asked for from now on is certainly newer.
        let (number, resets, asked_at) = (latest.number, head.resets, now);
        let looked = if latest.is_of(head) { latest.height } else { 0 };
        let newest = height.max(head.height).max(looked);
        if let Some(height) = last_id.filter(|last_id| (height..=newest).contains(last_id)) {
            return (Self { height, asked_at, digest: None, number, resets, held_at: None }, None);
        }
        let digest = digest(answer);
        let is_shared = latest.is_of(head) && latest.event.digest == digest && latest.event.height <= height;
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

    /// The height at which nothing had changed for the watcher: of the last event or of the last look.
    pub(super) fn height(&self, latest: &Latest, head: HeadStatus) -> u64 {
        match (self.resets == head.resets, latest.is_of(head)) {
            (true, true) => self.height.max(latest.height),
            (true, false) => self.height,
            (false, _) => head.height,
        }
    }

    /// What the watcher is sent next, while the head is this one. An event counts as sent.
    pub(super) fn next(&mut self, latest: &Latest, head: HeadStatus) -> Next {
        let event = &latest.event;
        if self.resets != head.resets {
            return Next::End;
        }
        if !latest.is_of(head) {
            return Next::Hold;
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
            && latest.height < head.height
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
            let latest = Latest::new(&question, &first, 1, 0, now);
            Self { question, template, latest, now }
        }

        /// A watcher who begins with the newest state.
        fn watcher(&self) -> Progress {
            let Latest { event, height, .. } = &self.latest;
            let newest = Answer { parts: vec![data(event)], ..said(&self.template, "", *height, self.now) };
            let head = HeadStatus { height: *height, is_followed: true, resets: self.latest.resets };
            Progress::begin(&self.latest, &self.question, &newest, *height, head, None, self.now).0
        }

        fn look(&mut self, text: &'static str, height: u64, is_set_back: bool) {
            self.now += Duration::from_secs(1);
            let answer = said(&self.template, text, height, self.now);
            let resets = self.latest.resets + u64::from(is_set_back);
            self.latest.publish(&self.question, &answer, height, resets, self.now);
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
        let head = HeadStatus { height: head, is_followed: true, resets: looks.latest.resets };
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
        assert_eq!(next(&mut new, &looks, 5), Err("Nothing".to_owned()));
        looks.look("b", 6, false);
        assert_eq!(next(&mut new, &looks, 6), Ok(("b".into(), 6, 60)));
    }

    #[test]
    fn an_id_above_the_head_counts_as_none() {
        let mut looks = Looks::new();
        looks.look("b", 4, false);
        let answer = said(&looks.template, "b", 4, looks.now);
        for (head, resets, last_id, is_told) in [
            (4, 0, 3, true),
            (4, 0, 4, false),
            (4, 0, 5, true),
            (6, 0, 5, false),
            (6, 0, 6, false),
            (6, 0, 7, true),
            (4, 0, u64::MAX, true),
            (4, 1, 5, true),
        ] {
            let head = HeadStatus { height: head, is_followed: true, resets };
            let Looks { latest, question, now, .. } = &looks;
            let (mut progress, first) =
                Progress::begin(latest, question, &answer, 4, head, Some(last_id), *now);
            assert_eq!(first.is_some(), is_told, "{last_id} at {head:?}");
            assert!(progress.height(latest, head) <= head.height, "{last_id} at {head:?}");
            let is_held = matches!(progress.next(latest, head), Next::Hold);
            assert_eq!(
                is_held,
                !is_told || resets > 0,
                "the last look is of before, or has nothing newer: {last_id}"
            );
        }
    }

    #[test]
    fn a_stream_shows_the_real_head_and_nothing_of_before_while_no_look_has_found_that_it_was_set_back() {
        let mut looks = Looks::new();
        looks.look("b", 9, false);
        let (mut before, head) = (looks.watcher(), HeadStatus { height: 5, is_followed: true, resets: 1 });
        assert_eq!(before.height(&looks.latest, head), 5);
        assert!(matches!(before.next(&looks.latest, head), Next::End));
        let answer = said(&looks.template, "c", 5, looks.now);
        let begun = Progress::begin(&looks.latest, &looks.question, &answer, 5, head, None, looks.now);
        let (mut new, first) = begun;
        assert_eq!(first.map(|first| first.height), Some(5));
        assert_eq!(new.height(&looks.latest, head), 5);
        assert!(matches!(new.next(&looks.latest, head), Next::Hold));
        looks.look("d", 6, true);
        assert_eq!(next(&mut new, &looks, 6), Ok(("d".into(), 6, 60)));
    }
}
