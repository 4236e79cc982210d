//! Answers that are kept for as long as they are true (design D6): until the store has a newer block, and for a
//! second at most; for ten while the store is away. Bounded by bytes.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use mesh_bus::{Encoding, Head};
use quick_cache::{Equivalent, Weighter, sync::Cache as Kept};
use tokio::time::{Instant, sleep};

use crate::{heads::Heads, metrics::Counted};

/// How long an answer may be shown while the store is there, even if no newer block comes.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// How long an answer may be shown while the store is away.
const KEPT: Duration = Duration::from_secs(10);

/// What an answer costs beside its bytes: its headers, its question, its place in the tables.
const ENTRY_BYTES: usize = 2560;

/// What a spelling costs beside its bytes, with the question that it may hold alone.
const SPELLING_BYTES: usize = 384;

/// Share of the room that is for spellings: one part in so many.
const SPELLINGS_PART: u64 = 8;

/// Answers on average, to size the tables.
const ANSWER_BYTES: u64 = 4096;

/// What was asked, in the one form that all its spellings have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// Name of the operation.
    pub(crate) operation: &'static str,
    /// Form of the answer.
    pub(crate) encoding: Encoding,
    /// The request message.
    pub(crate) message: Bytes,
}

/// An answer that several clients may get.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The store's newest block when it was read.
    pub(crate) head: Option<Head>,
    /// Entity tag, when it has one.
    pub(crate) etag: Option<String>,
    /// All headers but those of a single client's request.
    pub(crate) headers: HeaderMap,
    /// The body, in pieces that belong end to end.
    pub(crate) parts: Vec<Bytes>,
    /// No later than this it was read.
    pub(crate) asked_at: Instant,
    /// Where answers of this kind are counted.
    pub(crate) counted: Arc<Counted>,
}

impl Answer {
    /// The store's height when it was read.
    pub(crate) fn height(&self) -> Option<u64> {
        self.head.map(|head| head.height)
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }
}

/// A question as one client spelled it.
#[derive(Debug, PartialEq, Eq)]
struct Spelling {
    /// Path and query.
    target: Box<str>,
    gzip: bool,
}

/// The same, borrowed.
#[derive(Debug, Clone, Copy)]
struct Spelled<'a> {
    target: &'a str,
    gzip: bool,
}

impl Hash for Spelled<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.target, self.gzip).hash(state);
    }
}

impl Hash for Spelling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Spelled { target: &self.target, gzip: self.gzip }.hash(state);
    }
}

impl Equivalent<Spelling> for Spelled<'_> {
    fn equivalent(&self, spelling: &Spelling) -> bool {
        self.gzip == spelling.gzip && *self.target == *spelling.target
    }
}

/// What is known of a spelling.
#[derive(Debug, Clone)]
struct Known {
    question: Arc<Question>,
    /// Its last answer, for as long as that is kept: saves looking for it by its question.
    answer: Weak<Answer>,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Arc<Question>, Arc<Answer>> for Weight {
    fn weight(&self, question: &Arc<Question>, answer: &Arc<Answer>) -> u64 {
        (ENTRY_BYTES + question.message.len() + answer.bytes()) as u64
    }
}

impl Weighter<Spelling, Known> for Weight {
    fn weight(&self, spelling: &Spelling, known: &Known) -> u64 {
        (SPELLING_BYTES + spelling.target.len() + known.question.message.len()) as u64
    }
}

/// The answers of one edge.
pub(crate) struct Cache {
    heads: Arc<Heads>,
    /// Absent when no room is given.
    kept: Option<Tables>,
}

struct Tables {
    answers: Kept<Arc<Question>, Arc<Answer>, Weight>,
    /// Questions by their spellings, so that a hot one is not read again each time.
    spellings: Kept<Spelling, Known, Weight>,
}

impl Cache {
    /// A cache of so many bytes; 0 = none.
    pub(crate) fn new(bytes: u64, heads: Arc<Heads>) -> Self {
        let entries = |bytes: u64| usize::try_from(bytes / ANSWER_BYTES).unwrap_or(usize::MAX).max(16);
        let spellings = bytes / SPELLINGS_PART;
        let kept = (bytes > 0).then(|| Tables {
            answers: Kept::with_weighter(entries(bytes), bytes - spellings, Weight),
            spellings: Kept::with_weighter(entries(bytes), spellings, Weight),
        });
        Self { heads, kept }
    }

    /// What a spelling asks, when it was asked before.
    pub(crate) fn question(&self, target: &str, gzip: bool) -> Option<Arc<Question>> {
        Some(self.kept.as_ref()?.spellings.get(&Spelled { target, gzip })?.question)
    }

    /// An answer that is true now, to a question that was asked before in this spelling.
    pub(crate) fn fresh_as_spelled(&self, target: &str, gzip: bool, now: Instant) -> Option<Arc<Answer>> {
        let known = self.kept.as_ref()?.spellings.get(&Spelled { target, gzip })?;
        known.answer.upgrade().filter(|answer| self.is_true(answer, now))
    }

    /// An answer that is true now.
    pub(crate) fn fresh(&self, question: &Question, now: Instant) -> Option<Arc<Answer>> {
        let answer = self.kept.as_ref()?.answers.get(question)?;
        self.is_true(&answer, now).then_some(answer)
    }

    fn is_true(&self, answer: &Answer, now: Instant) -> bool {
        answer.height() == Some(self.heads.newest()) && now.duration_since(answer.asked_at) < FRESH
    }

    /// The last answer, for as long as the store is away; none below a height that its client has seen already.
    pub(crate) fn last(&self, question: &Question, floor: u64) -> Option<Arc<Answer>> {
        let answer = self.kept.as_ref()?.answers.get(question)?;
        let may_be_shown = answer.height() >= Some(floor) && answer.asked_at.elapsed() < KEPT;
        may_be_shown.then_some(answer)
    }

    /// Keeps an answer, if it says how long it is true.
    pub(crate) fn keep(&self, question: &Arc<Question>, answer: &Arc<Answer>) {
        if let Some(tables) = &self.kept
            && answer.height() >= Some(self.heads.newest())
            && !tables.answers.get(question).is_some_and(|kept| is_newer(&kept, answer))
        {
            tables.answers.insert(Arc::clone(question), Arc::clone(answer));
        }
    }

    /// Lets go of what may not be shown any more, so that an edge that has less to do takes less room.
    fn forget_outdated(&self, now: Instant) {
        if let Some(tables) = &self.kept {
            tables.answers.retain(|_, answer| now.duration_since(answer.asked_at) < KEPT);
            tables.spellings.retain(|_, known| known.answer.strong_count() > 0);
        }
    }

    /// Keeps what a spelling asks, and its last answer.
    pub(crate) fn learn(&self, target: &str, question: &Arc<Question>, answer: &Arc<Answer>) {
        if let Some(tables) = &self.kept {
            let spelling = Spelling { target: target.into(), gzip: question.encoding.gzip };
            let known = Known { question: Arc::clone(question), answer: Arc::downgrade(answer) };
            tables.spellings.insert(spelling, known);
        }
    }
}

/// Lets go of what may not be shown any more, from time to time, for as long as there is the cache.
pub(crate) fn tidy(cache: &Arc<Cache>) {
    let cache = Arc::downgrade(cache);
    tokio::spawn(async move {
        loop {
            sleep(KEPT).await;
            let Some(cache) = cache.upgrade() else { return };
            cache.forget_outdated(Instant::now());
        }
    });
}

/// Whether an answer was certainly read later than another one, or at a newer block.
fn is_newer(kept: &Answer, other: &Answer) -> bool {
    (kept.height(), kept.asked_at) > (other.height(), other.asked_at)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metrics::Metrics;

    const MIB: u64 = 1 << 20;

    /// Some question of this text.
    pub(crate) fn question(text: &str) -> Arc<Question> {
        let message = Bytes::copy_from_slice(text.as_bytes());
        Arc::new(Question { operation: "ListThings", encoding: Encoding::default(), message })
    }

    /// An answer of this length that was read at a height.
    pub(crate) fn answer(height: u64, asked_at: Instant, length: usize) -> Answer {
        let metrics = Metrics::register(&mut mesh_telemetry::Registry::default());
        Answer {
            head: Some(Head { height, time_ns: 0 }),
            etag: None,
            headers: HeaderMap::new(),
            parts: vec![Bytes::from(vec![b' '; length])],
            asked_at,
            counted: metrics.counted("ListThings"),
        }
    }

    fn ago(time: Duration) -> Instant {
        Instant::now().checked_sub(time).unwrap()
    }

    fn almost(time: Duration) -> Duration {
        time.checked_sub(Duration::from_millis(500)).unwrap()
    }

    fn cache(bytes: u64) -> (Cache, Arc<Heads>) {
        let heads = Arc::new(Heads::default());
        (Cache::new(bytes, Arc::clone(&heads)), heads)
    }

    fn keep(cache: &Cache, question: &Arc<Question>, height: u64, asked_at: Instant) {
        cache.keep(question, &Arc::new(answer(height, asked_at, 100)));
    }

    fn fresh(cache: &Cache, question: &Question) -> Option<u64> {
        cache.fresh(question, Instant::now()).and_then(|answer| answer.height())
    }

    fn last(cache: &Cache, question: &Question, floor: u64) -> Option<u64> {
        cache.last(question, floor).and_then(|answer| answer.height())
    }

    #[test]
    fn an_answer_is_true_until_there_is_a_newer_block() {
        let ((cache, heads), question) = (cache(MIB), question("a"));
        heads.seen(5);
        keep(&cache, &question, 5, Instant::now());
        assert_eq!(fresh(&cache, &question), Some(5));
        assert_eq!(fresh(&cache, &self::question("b")), None);
        heads.seen(6);
        assert_eq!((fresh(&cache, &question), last(&cache, &question, 5)), (None, Some(5)));
        keep(&cache, &question, 6, Instant::now());
        assert_eq!(fresh(&cache, &question), Some(6));
    }

    #[test]
    fn an_answer_is_true_for_a_second_and_may_be_shown_without_a_store_for_ten() {
        let question = question("a");
        for (age, is_fresh, is_shown) in [
            (Duration::ZERO, true, true),
            (almost(FRESH), true, true),
            (FRESH, false, true),
            (almost(KEPT), false, true),
            (KEPT, false, false),
        ] {
            let (cache, heads) = cache(MIB);
            heads.seen(5);
            keep(&cache, &question, 5, ago(age));
            assert_eq!(fresh(&cache, &question).is_some(), is_fresh, "after {age:?}");
            assert_eq!(last(&cache, &question, 0).is_some(), is_shown, "after {age:?}");
        }
    }

    #[test]
    fn what_a_client_has_seen_bounds_what_it_is_shown_without_a_store() {
        let ((cache, heads), question) = (cache(MIB), question("a"));
        heads.seen(5);
        keep(&cache, &question, 5, Instant::now());
        assert_eq!(last(&cache, &question, 5), Some(5));
        assert_eq!(last(&cache, &question, 6), None);
    }

    #[test]
    fn what_comes_late_is_not_kept() {
        let ((cache, heads), question) = (cache(MIB), question("a"));
        heads.seen(6);
        keep(&cache, &question, 6, Instant::now());
        keep(&cache, &question, 5, Instant::now());
        assert_eq!(last(&cache, &question, 0), Some(6), "it takes no newer one's place");
        keep(&cache, &self::question("b"), 5, Instant::now());
        assert_eq!(last(&cache, &self::question("b"), 0), None);
        let headless = Answer { head: None, ..answer(0, Instant::now(), 0) };
        cache.keep(&self::question("c"), &Arc::new(headless));
        assert!(cache.last(&self::question("c"), 0).is_none(), "nobody knows how long it is true");
    }

    #[test]
    fn the_answers_that_are_kept_are_bounded_by_their_bytes() {
        let (cache, heads) = cache(MIB);
        heads.seen(5);
        let asked: Vec<_> = (0..200).map(|number| question(&number.to_string())).collect();
        let held =
            |question: &Arc<Question>| cache.fresh(question, Instant::now()).map(|answer| answer.bytes());
        for question in &asked {
            cache.keep(question, &Arc::new(answer(5, Instant::now(), 50_000)));
            let bytes: usize = asked.iter().filter_map(held).sum();
            assert!(bytes as u64 <= MIB, "{bytes} bytes are held");
        }
        let bytes: usize = asked.iter().filter_map(held).sum();
        assert!(bytes as u64 > MIB / 2, "only {bytes} bytes are held");
        let huge = question("huge");
        cache.keep(&huge, &Arc::new(answer(5, Instant::now(), 2 << 20)));
        assert!(held(&huge).is_none(), "there is no room for it");
    }

    #[test]
    fn an_answer_that_was_asked_for_earlier_does_not_replace_a_later_one() {
        let ((cache, heads), question) = (cache(MIB), question("a"));
        heads.seen(5);
        let (later, earlier) =
            (Instant::now(), Instant::now().checked_sub(Duration::from_millis(200)).unwrap());
        let kept = Arc::new(answer(5, later, 1));
        cache.keep(&question, &kept);
        keep(&cache, &question, 5, earlier);
        assert!(cache.fresh(&question, later).is_some_and(|answer| Arc::ptr_eq(&answer, &kept)));
        keep(&cache, &question, 5, later);
        assert!(cache.fresh(&question, later).is_some_and(|answer| !Arc::ptr_eq(&answer, &kept)));
    }

    #[test]
    fn a_spelling_leads_to_its_last_answer_while_that_is_kept_and_true() {
        let ((cache, heads), question) = (cache(MIB), question("a"));
        heads.seen(5);
        let kept = Arc::new(answer(5, Instant::now(), 1));
        cache.keep(&question, &kept);
        cache.learn("/a", &question, &kept);
        let found = || cache.fresh_as_spelled("/a", false, Instant::now());
        assert!(found().is_some_and(|answer| Arc::ptr_eq(&answer, &kept)));
        assert!(cache.fresh_as_spelled("/b", false, Instant::now()).is_none());
        heads.seen(6);
        assert!(found().is_none(), "there is a newer block");
        let newer = Arc::new(answer(6, Instant::now(), 1));
        cache.learn("/a", &question, &newer);
        assert!(found().is_some());
        drop(newer);
        assert!(found().is_none(), "nobody keeps it");
    }

    #[test]
    fn what_may_not_be_shown_any_more_is_forgotten() {
        let (cache, heads) = cache(MIB);
        heads.seen(5);
        for (text, age) in [("new", almost(KEPT)), ("old", KEPT)] {
            let answer = Arc::new(answer(5, ago(age), 1));
            cache.keep(&question(text), &answer);
            cache.learn(text, &question(text), &answer);
        }
        cache.forget_outdated(Instant::now());
        let kept = cache.kept.as_ref().unwrap();
        assert_eq!((kept.answers.len(), kept.spellings.len()), (1, 1));
        assert!(last(&cache, &question("new"), 5).is_some() && cache.question("new", false).is_some());
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let ((cache, heads), question) = (cache(0), question("a"));
        heads.seen(5);
        keep(&cache, &question, 5, Instant::now());
        cache.learn("/a", &question, &Arc::new(answer(5, Instant::now(), 1)));
        assert!(fresh(&cache, &question).is_none() && cache.question("/a", false).is_none());
    }

    #[test]
    fn spellings_lead_to_their_question_and_to_no_other() {
        let (cache, _) = cache(MIB);
        let (plain, other) = (question("a"), question("b"));
        let encoding = Encoding { gzip: true, ..Encoding::default() };
        let packed = Arc::new(Question { encoding, ..Question::clone(&plain) });
        for (target, question) in
            [("/a?x=1&y=2", &plain), ("/a?y=2&x=1", &plain), ("/a?x=1&y=2", &packed), ("/b", &other)]
        {
            cache.learn(target, question, &Arc::new(answer(5, Instant::now(), 1)));
        }
        assert_eq!(cache.question("/a?x=1&y=2", false).as_ref(), Some(&plain));
        assert_eq!(cache.question("/a?y=2&x=1", false).as_ref(), Some(&plain));
        assert_eq!(cache.question("/a?x=1&y=2", true).as_ref(), Some(&packed));
        assert_eq!(cache.question("/b", false).as_ref(), Some(&other));
        assert!(cache.question("/b", true).is_none(), "another form");
        assert!(cache.question("/B", false).is_none() && cache.question("/b?", false).is_none());
    }
}
