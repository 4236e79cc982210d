//! The cache of answers (design D6). An answer is fresh until the store has a newer block, at most 1 s. An answer as
//! of a block does not depend on the newest one: it is fresh for 1 s, and a final one until it is evicted. While the
//! store is unavailable, an answer may be served for up to 10 s. Bounded by bytes.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderValue;
use mesh_bus::Encoding;
use quick_cache::{Equivalent, Weighter, sync::Cache as QuickCache};
use tokio::time::{Instant, sleep};

use crate::ask::{
    answer::{Answer, Validity},
    heads::ChainHeads,
};

/// Longest time that an answer is fresh without a newer block.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// Longest time that an answer may be served while the store is unavailable.
const STALE: Duration = Duration::from_secs(10);

/// Fixed memory cost of one answer with its headers and question, bytes.
const ANSWER_OVERHEAD: usize = 2560;

/// Fixed memory cost of one target entry, bytes.
const TARGET_OVERHEAD: usize = 424;

/// One part in so many of the bytes is for targets.
const TARGETS_SHARE: u64 = 8;

/// Average bytes of an answer, to size the tables.
const AVERAGE_ANSWER: u64 = 4096;

/// A decoded request: equal for all targets with the same meaning.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// Name of the operation.
    pub(crate) operation: &'static str,
    /// Encoding of the answer.
    pub(crate) encoding: Encoding,
    /// The encoded request message.
    pub(crate) message: Bytes,
    /// The block of the message as of which the answer is read; `None` = the newest one.
    pub(crate) at_block: Option<u64>,
    /// Whether the message names the chain.
    pub(crate) names_chain: bool,
}

/// The question of a request over HTTP, and what of the request is not in it.
#[derive(Debug, Clone)]
pub(crate) struct HttpQuestion {
    pub(crate) question: Arc<Question>,
    /// The value of `X-Ignored`, if the target has names that the operation does not know (J11).
    pub(crate) ignored: Option<HeaderValue>,
}

/// Path and query as a client spelled them, and whether it accepts gzip.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    path_and_query: Box<str>,
    gzip: bool,
}

/// [`Target`], borrowed.
#[derive(Debug, Clone, Copy)]
struct TargetRef<'a> {
    path_and_query: &'a str,
    gzip: bool,
}

impl Hash for TargetRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.path_and_query, self.gzip).hash(state);
    }
}

impl Hash for Target {
    fn hash<H: Hasher>(&self, state: &mut H) {
        TargetRef { path_and_query: &self.path_and_query, gzip: self.gzip }.hash(state);
    }
}

impl Equivalent<Target> for TargetRef<'_> {
    fn equivalent(&self, target: &Target) -> bool {
        self.gzip == target.gzip && *self.path_and_query == *target.path_and_query
    }
}

/// The question of a target.
#[derive(Debug, Clone)]
struct TargetEntry {
    question: HttpQuestion,
    /// The last answer while it is in the cache: saves the lookup by question.
    answer: Weak<Answer>,
}

/// The cache entry of a target.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) question: HttpQuestion,
    /// Present when it is fresh.
    pub(crate) answer: Option<Arc<Answer>>,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Arc<Question>, Arc<Answer>> for Weight {
    fn weight(&self, question: &Arc<Question>, answer: &Arc<Answer>) -> u64 {
        (ANSWER_OVERHEAD + question.message.len() + answer.bytes()) as u64
    }
}

impl Weighter<Target, TargetEntry> for Weight {
    fn weight(&self, target: &Target, entry: &TargetEntry) -> u64 {
        let HttpQuestion { question, ignored } = &entry.question;
        let ignored = ignored.as_ref().map_or(0, HeaderValue::len);
        (TARGET_OVERHEAD + target.path_and_query.len() + question.message.len() + ignored) as u64
    }
}

/// The answers of one edge.
pub(crate) struct Cache {
    heads: Arc<ChainHeads>,
    /// `None` when the cache is off.
    tables: Option<Tables>,
}

struct Tables {
    answers: QuickCache<Arc<Question>, Arc<Answer>, Weight>,
    /// Questions by their targets, so that a repeated target is not decoded again.
    targets: QuickCache<Target, TargetEntry, Weight>,
}

impl Cache {
    /// A cache of this many bytes; 0 = off.
    pub(crate) fn new(bytes: u64, heads: Arc<ChainHeads>) -> Self {
        let entries = |bytes: u64| usize::try_from(bytes / AVERAGE_ANSWER).unwrap_or(usize::MAX).max(16);
        let targets = bytes / TARGETS_SHARE;
        let tables = (bytes > 0).then(|| Tables {
            answers: QuickCache::with_weighter(entries(bytes), bytes - targets, Weight),
            targets: QuickCache::with_weighter(entries(bytes), targets, Weight),
        });
        Self { heads, tables }
    }

    /// The question of a target, with its answer when that is fresh.
    pub(crate) fn get_by_target(&self, path_and_query: &str, gzip: bool, now: Instant) -> Option<Cached> {
        let entry = self.tables.as_ref()?.targets.get(&TargetRef { path_and_query, gzip })?;
        let answer = entry.answer.upgrade().filter(|answer| self.is_fresh(answer, now));
        Some(Cached { question: entry.question, answer })
    }

    /// The answer to a question, when it is fresh.
    pub(crate) fn fresh(&self, question: &Question, now: Instant) -> Option<Arc<Answer>> {
        let answer = self.tables.as_ref()?.answers.get(question)?;
        self.is_fresh(&answer, now).then_some(answer)
    }

    fn is_fresh(&self, answer: &Answer, now: Instant) -> bool {
        let is_young = || now.duration_since(answer.asked_at) < FRESH;
        let is_of_this_chain = || !self.heads.was_reset_since(answer.asked_at);
        match answer.validity {
            Validity::Newest => answer.height() == Some(self.heads.newest()) && is_young(),
            Validity::OfBlock => is_young() && is_of_this_chain(),
            Validity::Final => is_of_this_chain(),
        }
    }

    /// The last answer to a question, for use while the store is unavailable. It is not below a height that the
    /// client has seen, unless it is as of a block, and not from before a reset of the store.
    pub(crate) fn stale(&self, question: &Question, min_height: u64) -> Option<Arc<Answer>> {
        let answer = self.tables.as_ref()?.answers.get(question)?;
        let is_new_enough = answer.newest_height().is_none_or(|height| height >= min_height);
        let may_be_shown = is_new_enough && answer.asked_at.elapsed() < STALE;
        (may_be_shown && !self.heads.was_reset_since(answer.asked_at)).then_some(answer)
    }

    /// Stores an answer that has a block height, unless a newer one is stored, or a newer block is known and the answer
    /// is not as of a block.
    pub(crate) fn insert(&self, question: &Arc<Question>, answer: &Arc<Answer>) {
        if let Some(tables) = &self.tables
            && answer.head.is_some()
            && answer.newest_height().is_none_or(|height| height >= self.heads.newest())
            && !tables.answers.get(question).is_some_and(|stored| self.is_newer(&stored, answer))
        {
            tables.answers.insert(Arc::clone(question), Arc::clone(answer));
        }
    }

    /// Whether a stored answer was certainly read later than another one, or at a newer block, since the last
    /// reset of the store.
    fn is_newer(&self, stored: &Answer, other: &Answer) -> bool {
        (stored.height(), stored.asked_at) > (other.height(), other.asked_at)
            && !self.heads.was_reset_since(stored.asked_at)
    }

    /// Stores the question and the last answer of a target.
    pub(crate) fn insert_target(&self, path_and_query: &str, question: &HttpQuestion, answer: &Arc<Answer>) {
        if let Some(tables) = &self.tables {
            let gzip = question.question.encoding.gzip;
            let target = Target { path_and_query: path_and_query.into(), gzip };
            let entry = TargetEntry { question: question.clone(), answer: Arc::downgrade(answer) };
            tables.targets.insert(target, entry);
        }
    }

    /// Evicts expired answers, so that a less busy edge takes less memory.
    fn evict_expired(&self, now: Instant) {
        if let Some(tables) = &self.tables {
            tables.answers.retain(|_, answer| now.duration_since(answer.asked_at) < STALE);
            tables.targets.retain(|_, entry| entry.answer.strong_count() > 0);
        }
    }
}

/// Evicts expired answers every ten seconds, until the cache is dropped.
pub(crate) fn spawn_eviction(cache: &Arc<Cache>) {
    let cache = Arc::downgrade(cache);
    tokio::spawn(async move {
        loop {
            sleep(STALE).await;
            let Some(cache) = cache.upgrade() else { return };
            cache.evict_expired(Instant::now());
        }
    });
}

#[cfg(test)]
pub(crate) mod tests;
