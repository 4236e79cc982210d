//! The newest state of a live query and the progress of each watcher. No I/O.

use std::sync::Arc;

use mesh_problem::Problem;
use tokio::time::Instant;

use crate::{
    ask::{answer::Answer, cache::Question, heads::HeadStatus},
    watch::event::{Emission, Event, digest},
};

/// The newest state of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Latest {
    event: Arc<Event>,
    /// Height of the last look that read this answer.
    height: u64,
    /// Time of that block, nanoseconds since the Unix epoch; 0 if the answer has no time.
    time_ns: i64,
    /// When the last look sent its request.
    asked_at: Instant,
    /// When its reply was received.
    came_at: Instant,
    /// Number of the state, counted from 1.
    number: u64,
    /// Looks so far.
    looks: u64,
    /// Number of head resets before the last look's request.
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

    /// Whether the state belongs to this head and not to one before a reset.
    pub(super) fn is_of(&self, head: HeadStatus) -> bool {
        self.resets == head.resets
    }

    /// Records the answer of a look, read at this height; `resets`: number of head resets before its request. Returns
    /// whether there is a new state.
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
        // A request sent before the last reply was received may have read an older state of the store, even at
        // the same height: late rows change an answer without a new block.
        let is_older = height < self.height || height == self.height && answer.asked_at <= self.came_at;
        if is_older && !is_reset {
            return false;
        }
        (self.height, self.time_ns) = (height, answer.time_ns());
        (self.asked_at, self.came_at) = (answer.asked_at, now);
        self.resets = resets;
        if !is_reset && self.event.digest == digest(answer) {
            return false;
        }
        let event = Event::of_answer(question, answer, height);
        // While there is no memory for the answer, its problem is one state.
        (is_reset || event.digest != self.event.digest) && self.replace(event)
    }

    /// Records that the read fails at present. Returns whether this is a new state.
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

    /// Whether the newest state is a problem.
    pub(super) fn is_problem(&self) -> bool {
        self.event.is_problem()
    }

    fn replace(&mut self, event: Event) -> bool {
        self.event = Arc::new(event);
        self.number += 1;
        true
    }
}

/// The last event of a watcher, from which its next event follows (W1-W3, W6).
#[derive(Debug)]
pub(crate) struct Progress {
    height: u64,
    /// Request time: at the same height the later request is newer.
    asked_at: Instant,
    /// `None` for a client that resumed with this height: it gets the next state in any case.
    digest: Option<u64>,
    /// Number of the state; gaps are skipped states.
    number: u64,
    resets: u64,
    /// Number of looks when an event was delayed because the head had moved.
    pub(super) held_at: Option<u64>,
}

/// The next step for a watcher.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send an event, which replaces this many older ones.
    Send(Emission, u64),
    /// Send nothing: the client has the newest state.
    Nothing,
    /// The head has moved: wait for the next look.
    Hold,
    /// The store was reset. Heights never decrease on a stream, so it ends.
    End,
}

impl Progress {
    /// A watcher that starts with an answer read at this height, or resumes after the height `last_id` and gets
    /// no event until the head is above it. A `last_id` above the head is from before a reset of the network and
    /// is ignored (W6). Returns its first event, if any.
    pub(super) fn begin(
        latest: &Latest,
        question: &Question,
        answer: &Answer,
        height: u64,
        head: HeadStatus,
        last_id: Option<u64>,
        now: Instant,
    ) -> (Self, Option<Emission>) {
        // Only a request sent from now on is certainly newer.
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
        let progress = Self { height, asked_at, digest: Some(event.digest), number, resets, held_at: None };
        (progress, Some(Emission { event, height, time_ns: answer.time_ns() }))
    }

    /// Whether the last look is certainly newer than the watcher's state: at a newer block, or requested later. A
    /// client that resumes at the newest block already has the state of that block's commit; only late rows are
    /// newer.
    fn is_passed(&self, latest: &Latest) -> bool {
        match self.digest {
            Some(_) => (latest.height, latest.asked_at) > (self.height, self.asked_at),
            None => (latest.height, latest.number) > (self.height, self.number),
        }
    }

    /// The greatest height up to which the watcher is current: of the last event or of the last look.
    pub(super) fn height(&self, latest: &Latest, head: HeadStatus) -> u64 {
        match (self.resets == head.resets, latest.is_of(head)) {
            (true, true) => self.height.max(latest.height),
            (true, false) => self.height,
            (false, _) => head.height,
        }
    }

    /// The watcher's next step at this head. A returned event counts as sent.
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
        // A plain read would be newer now (W2). The state of the next look is sent in any case, so that fast
        // blocks cannot starve a watcher.
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
            // The last look read the same answer at its height.
            (self.height, time_ns) = (latest.height, latest.time_ns);
        }
        self.asked_at = if event.is_problem() { event.asked_at } else { latest.asked_at };
        // A resumed client still gets the current state after a problem.
        if self.digest.is_some() || !event.is_problem() {
            self.digest = Some(event.digest);
        }
        Next::Send(Emission { event: Arc::clone(event), height: self.height, time_ns }, skipped)
    }

    /// Nothing to send; ends a delay.
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

    /// A live query whose looks the test triggers, once a second.
    struct Looks {
        question: Question,
        latest: Latest,
        now: Instant,
    }

    impl Looks {
        fn new() -> Self {
            let encoding = Encoding { format: Format::Json, gzip: false };
            let question = Question { operation: "ListThings", encoding, ..Question::default() };
            let now = Instant::now();
            let first = said("a", 1, now);
            let latest = Latest::new(&question, &first, 1, 0, now);
            Self { question, latest, now }
        }

        /// A watcher that starts with the newest state.
        fn watcher(&self) -> Progress {
            let Latest { event, height, .. } = &self.latest;
            let newest = Answer { parts: vec![data(event)], ..said("", *height, self.now) };
            let head = HeadStatus { height: *height, is_followed: true, resets: self.latest.resets };
            Progress::begin(&self.latest, &self.question, &newest, *height, head, None, self.now).0
        }

        fn look(&mut self, text: &'static str, height: u64, is_reset: bool) {
            self.now += Duration::from_secs(1);
            let answer = said(text, height, self.now);
            let resets = self.latest.resets + u64::from(is_reset);
            self.latest.publish(&self.question, &answer, height, resets, self.now);
        }
    }

    fn said(text: &'static str, height: u64, asked_at: Instant) -> Answer {
        let head = Some(Head { height, time_ns: height as i64 * 10 });
        Answer { head, parts: vec![text.into()], ..answer(height, asked_at, 0) }
    }

    fn data(event: &Arc<Event>) -> Bytes {
        let emission = Emission { event: Arc::clone(event), height: event.height, time_ns: event.time_ns };
        let text = String::from_utf8(emission.bytes(None).concat()).unwrap();
        text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned().into()
    }

    /// The data, height and time of the next event, else the next step.
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
    fn an_id_above_the_head_counts_as_none() {
        let mut looks = Looks::new();
        looks.look("b", 4, false);
        let answer = said("b", 4, looks.now);
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
            let Looks { latest, question, now } = &looks;
            let (mut progress, first) =
                Progress::begin(latest, question, &answer, 4, head, Some(last_id), *now);
            assert_eq!(first.is_some(), is_told, "{last_id} at {head:?}");
            assert!(progress.height(latest, head) <= head.height, "{last_id} at {head:?}");
            let is_held = matches!(progress.next(latest, head), Next::Hold);
            assert_eq!(
                is_held,
                !is_told || resets > 0,
                "the last look was before, or has no newer state: {last_id}"
            );
        }
    }

    #[test]
    fn a_stream_shows_the_real_head_and_no_older_state_before_a_look_notices_a_reset() {
        let mut looks = Looks::new();
        looks.look("b", 9, false);
        let (mut before, head) = (looks.watcher(), HeadStatus { height: 5, is_followed: true, resets: 1 });
        assert_eq!(before.height(&looks.latest, head), 5);
        assert!(matches!(before.next(&looks.latest, head), Next::End));
        let answer = said("c", 5, looks.now);
        let begun = Progress::begin(&looks.latest, &looks.question, &answer, 5, head, None, looks.now);
        let (mut new, first) = begun;
        assert_eq!(first.map(|first| first.height), Some(5));
        assert_eq!(new.height(&looks.latest, head), 5);
        assert!(matches!(new.next(&looks.latest, head), Next::Hold));
        looks.look("d", 6, true);
        assert_eq!(next(&mut new, &looks, 6), Ok(("d".into(), 6, 60)));
    }
}
