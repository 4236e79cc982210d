//! Tests of the cache.

use http::HeaderMap;
use mesh_bus::Head;

use super::*;
use crate::ask::answer_memory::AnswerMemory;

const MIB: u64 = 1 << 20;

/// A question with this message.
pub(crate) fn question(text: &str) -> Arc<Question> {
    let message = Bytes::copy_from_slice(text.as_bytes());
    Arc::new(Question { operation: "ListThings", message, ..Question::default() })
}

/// An answer of this length that was read at a height.
pub(crate) fn answer(height: u64, asked_at: Instant, length: usize) -> Answer {
    Answer {
        head: Some(Head { height, time_ns: 0 }),
        validity: Validity::Newest,
        etag: None,
        headers: HeaderMap::new(),
        parts: vec![Bytes::from(vec![b' '; length])],
        asked_at,
        metrics: None,
        memory: AnswerMemory::default(),
        client: 0,
    }
}

fn ago(time: Duration) -> Instant {
    Instant::now().checked_sub(time).unwrap()
}

fn almost(time: Duration) -> Duration {
    time.checked_sub(Duration::from_millis(500)).unwrap()
}

/// A cache at a newest block.
fn cache(bytes: u64, newest: u64) -> (Cache, Arc<ChainHeads>) {
    let heads = Arc::new(ChainHeads::default());
    heads.observe(newest);
    (Cache::new(bytes, Arc::clone(&heads)), heads)
}

fn insert(cache: &Cache, question: &Arc<Question>, height: u64, asked_at: Instant) {
    cache.insert(question, &Arc::new(answer(height, asked_at, 100)));
}

fn insert_target(cache: &Cache, target: &str, question: &Arc<Question>, answer: &Arc<Answer>) {
    let question = HttpQuestion { question: Arc::clone(question), ignored: None };
    cache.insert_target(target, &question, answer);
}

fn fresh(cache: &Cache, question: &Question) -> Option<u64> {
    cache.fresh(question, Instant::now()).and_then(|answer| answer.height())
}

fn stale(cache: &Cache, question: &Question, min_height: u64) -> Option<u64> {
    cache.stale(question, min_height).and_then(|answer| answer.height())
}

fn by_target(cache: &Cache, path_and_query: &str, gzip: bool) -> Option<Arc<Question>> {
    cache.get_by_target(path_and_query, gzip, Instant::now()).map(|cached| cached.question.question)
}

#[test]
fn an_answer_is_fresh_until_there_is_a_newer_block() {
    let ((cache, heads), question) = (cache(MIB, 5), question("a"));
    insert(&cache, &question, 5, Instant::now());
    assert_eq!(fresh(&cache, &question), Some(5));
    assert_eq!(fresh(&cache, &self::question("b")), None);
    heads.observe(6);
    assert_eq!((fresh(&cache, &question), stale(&cache, &question, 5)), (None, Some(5)));
    assert_eq!(stale(&cache, &question, 6), None, "the client has seen a newer block");
    insert(&cache, &question, 6, Instant::now());
    assert_eq!(fresh(&cache, &question), Some(6));
}

#[test]
fn an_answer_is_fresh_for_a_second_and_may_be_shown_without_a_store_for_ten() {
    let question = question("a");
    for (age, is_fresh, is_shown) in [
        (Duration::ZERO, true, true),
        (almost(FRESH), true, true),
        (FRESH, false, true),
        (almost(STALE), false, true),
        (STALE, false, false),
    ] {
        let (cache, _) = cache(MIB, 5);
        insert(&cache, &question, 5, ago(age));
        assert_eq!(fresh(&cache, &question).is_some(), is_fresh, "after {age:?}");
        assert_eq!(stale(&cache, &question, 0).is_some(), is_shown, "after {age:?}");
    }
}

#[test]
fn a_late_answer_is_not_stored() {
    let ((cache, _), question) = (cache(MIB, 6), question("a"));
    insert(&cache, &question, 6, Instant::now());
    insert(&cache, &question, 5, Instant::now());
    assert_eq!(stale(&cache, &question, 0), Some(6), "it does not replace a newer one");
    insert(&cache, &self::question("b"), 5, Instant::now());
    assert_eq!(stale(&cache, &self::question("b"), 0), None);
    let headless = Answer { head: None, ..answer(0, Instant::now(), 0) };
    cache.insert(&self::question("c"), &Arc::new(headless));
    assert!(cache.stale(&self::question("c"), 0).is_none(), "its age in blocks is unknown");
}

/// Stores an answer as of a block.
fn insert_past(cache: &Cache, question: &Arc<Question>, validity: Validity, age: Duration) {
    cache.insert(question, &Arc::new(Answer { validity, ..answer(3, ago(age), 100) }));
}

#[test]
fn an_answer_as_of_a_block_is_fresh_whatever_the_newest_block_is() {
    for (validity, age, is_fresh, is_shown) in [
        (Validity::OfBlock, Duration::ZERO, true, true),
        (Validity::OfBlock, almost(FRESH), true, true),
        (Validity::OfBlock, FRESH, false, true),
        (Validity::OfBlock, STALE, false, false),
        (Validity::Final, FRESH, true, true),
        (Validity::Final, STALE, true, false),
    ] {
        let ((cache, heads), question) = (cache(MIB, 6), question("a"));
        insert_past(&cache, &question, validity, age);
        heads.observe(7);
        assert_eq!(fresh(&cache, &question).is_some(), is_fresh, "{validity:?} after {age:?}");
        assert_eq!(stale(&cache, &question, 7).is_some(), is_shown, "{validity:?} after {age:?}");
        insert_past(&cache, &question, Validity::OfBlock, age + FRESH);
        let stored = cache.tables.as_ref().unwrap().answers.get(&question).unwrap();
        assert_eq!(stored.validity, validity, "an earlier one does not replace it");
    }
}

#[test]
fn no_answer_as_of_a_block_outlives_a_reset_of_the_store() {
    for validity in [Validity::OfBlock, Validity::Final] {
        let ((cache, heads), question) = (cache(MIB, 7), question("a"));
        insert_past(&cache, &question, validity, Duration::ZERO);
        assert!(fresh(&cache, &question).is_some());
        heads.reset(4);
        assert_eq!((fresh(&cache, &question), stale(&cache, &question, 0)), (None, None), "{validity:?}");
        insert(&cache, &self::question("b"), 4, Instant::now());
        std::thread::sleep(Duration::from_millis(1));
        insert_past(&cache, &question, validity, Duration::ZERO);
        assert_eq!(fresh(&cache, &question), Some(3), "{validity:?}");
    }
}

#[test]
fn stored_answers_are_bounded_by_their_bytes() {
    let (cache, _) = cache(MIB, 5);
    let questions: Vec<_> = (0..200).map(|number| question(&number.to_string())).collect();
    let stored =
        |question: &Arc<Question>| cache.fresh(question, Instant::now()).map(|answer| answer.bytes());
    for question in &questions {
        cache.insert(question, &Arc::new(answer(5, Instant::now(), 50_000)));
        let bytes: usize = questions.iter().filter_map(stored).sum();
        assert!(bytes as u64 <= MIB, "{bytes} bytes are stored");
    }
    let bytes: usize = questions.iter().filter_map(stored).sum();
    assert!(bytes as u64 > MIB / 2, "only {bytes} bytes are stored");
    let huge = question("huge");
    cache.insert(&huge, &Arc::new(answer(5, Instant::now(), 2 << 20)));
    assert!(stored(&huge).is_none(), "it is larger than the cache");
}

#[test]
fn an_answer_that_was_asked_for_earlier_does_not_replace_a_later_one() {
    let ((cache, _), question) = (cache(MIB, 5), question("a"));
    let (later, earlier) = (Instant::now(), Instant::now().checked_sub(Duration::from_millis(200)).unwrap());
    let stored = Arc::new(answer(5, later, 1));
    cache.insert(&question, &stored);
    insert(&cache, &question, 5, earlier);
    assert!(cache.fresh(&question, later).is_some_and(|answer| Arc::ptr_eq(&answer, &stored)));
    insert(&cache, &question, 5, later);
    assert!(cache.fresh(&question, later).is_some_and(|answer| !Arc::ptr_eq(&answer, &stored)));
}

#[test]
fn a_target_has_its_last_answer_while_that_is_stored_and_fresh() {
    let ((cache, heads), question) = (cache(MIB, 5), question("a"));
    let stored = Arc::new(answer(5, Instant::now(), 1));
    cache.insert(&question, &stored);
    insert_target(&cache, "/a", &question, &stored);
    let found = || cache.get_by_target("/a", false, Instant::now()).and_then(|cached| cached.answer);
    assert!(found().is_some_and(|answer| Arc::ptr_eq(&answer, &stored)));
    assert!(cache.get_by_target("/b", false, Instant::now()).is_none());
    heads.observe(6);
    assert!(found().is_none(), "there is a newer block");
    let newer = Arc::new(answer(6, Instant::now(), 1));
    insert_target(&cache, "/a", &question, &newer);
    assert!(found().is_some());
    drop(newer);
    assert!(found().is_none(), "it was dropped");
}

#[test]
fn expired_answers_are_evicted() {
    let (cache, _) = cache(MIB, 5);
    for (text, age) in [("new", almost(STALE)), ("old", STALE)] {
        let answer = Arc::new(answer(5, ago(age), 1));
        cache.insert(&question(text), &answer);
        insert_target(&cache, text, &question(text), &answer);
    }
    cache.evict_expired(Instant::now());
    let tables = cache.tables.as_ref().unwrap();
    assert_eq!((tables.answers.len(), tables.targets.len()), (1, 1));
    assert!(stale(&cache, &question("new"), 5).is_some() && by_target(&cache, "new", false).is_some());
}

#[test]
fn a_cache_of_no_bytes_stores_nothing() {
    let ((cache, _), question) = (cache(0, 5), question("a"));
    insert(&cache, &question, 5, Instant::now());
    insert_target(&cache, "/a", &question, &Arc::new(answer(5, Instant::now(), 1)));
    assert!(fresh(&cache, &question).is_none() && by_target(&cache, "/a", false).is_none());
}

#[test]
fn a_target_leads_to_its_question_and_to_no_other() {
    let (cache, _) = cache(MIB, 5);
    let (plain, other) = (question("a"), question("b"));
    let encoding = Encoding { gzip: true, ..Encoding::default() };
    let packed = Arc::new(Question { encoding, ..Question::clone(&plain) });
    for (target, question) in
        [("/a?x=1&y=2", &plain), ("/a?y=2&x=1", &plain), ("/a?x=1&y=2", &packed), ("/b", &other)]
    {
        insert_target(&cache, target, question, &Arc::new(answer(5, Instant::now(), 1)));
    }
    assert_eq!(by_target(&cache, "/a?x=1&y=2", false).as_ref(), Some(&plain));
    assert_eq!(by_target(&cache, "/a?y=2&x=1", false).as_ref(), Some(&plain));
    assert_eq!(by_target(&cache, "/a?x=1&y=2", true).as_ref(), Some(&packed));
    assert_eq!(by_target(&cache, "/b", false).as_ref(), Some(&other));
    assert!(by_target(&cache, "/b", true).is_none(), "another encoding");
    assert!(by_target(&cache, "/B", false).is_none() && by_target(&cache, "/b?", false).is_none());
}
