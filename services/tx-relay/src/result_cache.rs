//! A cache of the results of submissions by transaction hash. Its time to live is to be that of the node's
//! own cache, which refuses repeats (contract 5.3).

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use mesh_transaction::TxHash;
use proto_msgs::v2::{SubmissionType, SubmitTransactionReply};
use tokio::time::Instant;

/// Most bytes of texts from nodes in the cache; beyond that the oldest results are evicted early.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// How far a transaction had come when the node answered. A later step implies the earlier ones. The numbers
/// are those that replicas exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finality {
    /// The node has received it.
    Async = 1,
    /// The node has checked it.
    Sync = 2,
    /// It was executed in a block.
    Commit = 3,
}

impl Finality {
    pub(crate) const ALL: [Self; 3] = [Self::Async, Self::Sync, Self::Commit];

    /// The step that a client wants to wait for; absent means TYPE_SYNC.
    pub(crate) fn from_type(kind: SubmissionType) -> Self {
        match kind {
            SubmissionType::TypeAsync => Self::Async,
            SubmissionType::TypeUnspecified | SubmissionType::TypeSync => Self::Sync,
            SubmissionType::TypeCommit => Self::Commit,
        }
    }

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Sync => "sync",
            Self::Commit => "commit",
        }
    }
}

/// The known state of a transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SubmissionState {
    /// The answer that counts so far.
    pub(crate) answer: Option<(Finality, SubmitTransactionReply)>,
    /// How often the node had been asked once more when it gave that answer, because it might have lost the transaction.
    pub(crate) asked_again: u32,
    /// Whether it may have reached the node through a submission that was not answered.
    pub(crate) may_have_arrived: bool,
}

impl SubmissionState {
    /// The answer to a submission that waits for `required`. A refusal answers every submission, because it
    /// is final, unless it is open.
    pub(crate) fn answer_to(&self, required: Finality) -> Option<&SubmitTransactionReply> {
        let (finality, reply) = self.answer.as_ref().filter(|_| !self.is_open_refusal())?;
        (*finality >= required || !reply.success).then_some(reply)
    }

    /// Whether a check refused it while another submission, through another replica, was not answered: another node may
    /// have it.
    pub(crate) fn is_open_refusal(&self) -> bool {
        let is_refusal = |(finality, reply): &(Finality, SubmitTransactionReply)| {
            *finality < Finality::Commit && !reply.success
        };
        self.may_have_arrived && self.answer.as_ref().is_some_and(is_refusal)
    }

    /// Whether it waits for a block, as far as known.
    pub(crate) fn is_pending(&self) -> bool {
        self.answer.as_ref().is_some_and(|(finality, reply)| *finality < Finality::Commit && reply.success)
    }

    /// Whether the node has accepted it, as far as known.
    pub(crate) fn is_accepted(&self) -> bool {
        self.answer.as_ref().is_some_and(|(_, reply)| reply.success)
    }

    /// Whether the node has accepted it after its check.
    pub(crate) fn was_checked(&self) -> bool {
        self.answer.as_ref().is_some_and(|(finality, reply)| reply.success && *finality >= Finality::Sync)
    }

    /// Merges another state of the same transaction. The result does not depend on the order in which states
    /// are merged, so that replicas that know the same answers agree: that of a block counts, then that of the node when it was
    /// asked later, then the more final one, and of two checks the one that accepted, since that transaction may be in a
    /// block later. Between answers that differ in nothing else, their contents decide.
    pub(crate) fn merge(&mut self, other: Self) {
        self.may_have_arrived |= other.may_have_arrived;
        if (other.rank(), other.content()) > (self.rank(), self.content()) {
            (self.answer, self.asked_again) = (other.answer, other.asked_again);
        }
    }

    fn rank(&self) -> Option<(bool, u32, Finality, bool)> {
        let (finality, reply) = self.answer.as_ref()?;
        Some((*finality == Finality::Commit, self.asked_again, *finality, reply.success))
    }

    fn content(&self) -> Option<(u32, &str, &str)> {
        let (_, reply) = self.answer.as_ref()?;
        Some((reply.code, reply.data.as_str(), reply.log.as_str()))
    }

    fn text_bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |(_, reply)| reply.data.len() + reply.log.len())
    }
}

/// Most updates that are kept although later ones of the same transactions count; and as many as there are results.
const SUPERSEDED: usize = 1024;

/// The results of the newest transactions.
#[derive(Debug)]
pub(crate) struct ResultCache {
    entries: HashMap<TxHash, CacheEntry>,
    /// Updates, oldest first. One that is older than its entry's `since` is stale.
    order: VecDeque<(Instant, TxHash)>,
    text_bytes: usize,
    ttl: Duration,
    max_entries: usize,
}

#[derive(Debug)]
struct CacheEntry {
    state: SubmissionState,
    since: Instant,
}

impl ResultCache {
    /// A cache of at most `max_entries` results, each for `ttl` after its last update.
    pub(crate) fn new(ttl: Duration, max_entries: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), text_bytes: 0, ttl, max_entries }
    }

    /// The state of a transaction, unless it has expired.
    pub(crate) fn get(&self, hash: &TxHash, now: Instant) -> Option<&SubmissionState> {
        let entry = self.entries.get(hash)?;
        (now.duration_since(entry.since) < self.ttl).then_some(&entry.state)
    }

    /// Whether the state of a transaction was last updated at least `age` ago.
    pub(crate) fn is_older(&self, hash: &TxHash, age: Duration, now: Instant) -> bool {
        self.entries.get(hash).is_some_and(|entry| now.duration_since(entry.since) >= age)
    }

    /// Merges the state of a transaction into its entry, and evicts expired entries and those over the
    /// limits.
    pub(crate) fn insert(&mut self, hash: TxHash, state: SubmissionState, now: Instant) {
        self.evict_expired(now);
        let entry = self
            .entries
            .entry(hash)
            .or_insert_with(|| CacheEntry { state: SubmissionState::default(), since: now });
        self.text_bytes -= entry.state.text_bytes();
        entry.state.merge(state);
        entry.since = now;
        self.text_bytes += entry.state.text_bytes();
        self.order.push_back((now, hash));
        if self.order.len() > 2 * self.entries.len() + SUPERSEDED {
            let entries = &self.entries;
            let is_current = |(since, hash): &(Instant, TxHash)| {
                entries.get(hash).is_some_and(|entry| entry.since == *since)
            };
            self.order.retain(is_current);
        }
        while self.entries.len() > self.max_entries || self.text_bytes > MAX_TEXT_BYTES {
            let Some((since, hash)) = self.order.pop_front() else { return };
            self.evict(&hash, since);
        }
    }

    /// Like [`Self::insert`], for the state that another replica knows: nothing is changed by what is known.
    pub(crate) fn learn(&mut self, hash: TxHash, state: SubmissionState, now: Instant) {
        let known = self.get(&hash, now).cloned().unwrap_or_default();
        let mut merged = known.clone();
        merged.merge(state);
        if merged != known {
            self.insert(hash, merged, now);
        }
    }

    /// All states that have not expired, the newest first.
    pub(crate) fn newest(&self, now: Instant) -> impl Iterator<Item = (&TxHash, &SubmissionState)> {
        let is_current = |(since, hash): &&(Instant, TxHash)| {
            self.entries.get(hash).is_some_and(|entry| entry.since == *since)
        };
        let current = self.order.iter().rev().filter(is_current);
        current.filter_map(move |(_, hash)| Some((hash, self.get(hash, now)?)))
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn evict_expired(&mut self, now: Instant) {
        while let Some((since, hash)) = self.order.front().copied() {
            if now.duration_since(since) < self.ttl {
                return;
            }
            self.order.pop_front();
            self.evict(&hash, since);
        }
    }

    fn evict(&mut self, hash: &TxHash, since: Instant) {
        if self.entries.get(hash).is_some_and(|entry| entry.since == since)
            && let Some(entry) = self.entries.remove(hash)
        {
            self.text_bytes -= entry.state.text_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(finality: Finality, log: &str) -> SubmissionState {
        let reply = SubmitTransactionReply {
            success: true,
            log: log.to_owned(),
            ..SubmitTransactionReply::default()
        };
        SubmissionState { answer: Some((finality, reply)), ..SubmissionState::default() }
    }

    fn hash(number: u8) -> TxHash {
        TxHash::of(&[number])
    }

    #[test]
    fn an_answer_covers_less_final_ones_and_a_refusal_all() {
        let sync = accepted(Finality::Sync, "");
        assert!(sync.answer_to(Finality::Async).is_some() && sync.answer_to(Finality::Sync).is_some());
        assert!(sync.answer_to(Finality::Commit).is_none());
        let refused = SubmissionState {
            answer: Some((Finality::Sync, SubmitTransactionReply::default())),
            ..SubmissionState::default()
        };
        assert!(refused.answer_to(Finality::Commit).is_some());
        assert!(
            SubmissionState { may_have_arrived: true, ..SubmissionState::default() }
                .answer_to(Finality::Async)
                .is_none()
        );
    }

    #[test]
    fn a_refusal_is_open_while_another_submission_is_not_answered() {
        let lost = SubmissionState { may_have_arrived: true, ..SubmissionState::default() };
        for (finality, is_open) in [(Finality::Sync, true), (Finality::Commit, false)] {
            let mut state = SubmissionState {
                answer: Some((finality, SubmitTransactionReply::default())),
                ..SubmissionState::default()
            };
            assert!(!state.is_open_refusal() && state.answer_to(Finality::Sync).is_some());
            state.merge(lost.clone());
            assert_eq!(
                (state.is_open_refusal(), state.answer_to(Finality::Sync).is_none()),
                (is_open, is_open)
            );
        }
    }

    #[test]
    fn merged_states_do_not_depend_on_their_order() {
        let refused = |finality| SubmissionState {
            answer: Some((finality, SubmitTransactionReply { code: 7, ..SubmitTransactionReply::default() })),
            ..SubmissionState::default()
        };
        let rising = [
            SubmissionState::default(),
            accepted(Finality::Async, ""),
            refused(Finality::Sync),
            accepted(Finality::Sync, ""),
            accepted(Finality::Sync, "gas"),
            accepted(Finality::Sync, "gas 1"),
            SubmissionState { asked_again: 1, ..accepted(Finality::Async, "") },
            SubmissionState { asked_again: 1, ..refused(Finality::Sync) },
            refused(Finality::Commit),
        ];
        for (index, weaker) in rising.iter().enumerate() {
            for stronger in &rising[index..] {
                for (first, second) in [(weaker, stronger), (stronger, weaker)] {
                    let mut results = ResultCache::new(Duration::from_secs(600), 10);
                    let now = Instant::now();
                    results.learn(hash(1), first.clone(), now);
                    results.learn(hash(1), second.clone(), now + Duration::from_nanos(1));
                    assert_eq!(results.get(&hash(1), now).cloned().unwrap_or_default(), *stronger);
                    let known: Vec<_> = results.newest(now).map(|(hash, _)| *hash).collect();
                    assert_eq!(known, if index == 0 && stronger == weaker { vec![] } else { vec![hash(1)] });
                }
            }
        }
    }

    #[test]
    fn what_may_have_arrived_keeps_its_answer() {
        let mut state = accepted(Finality::Sync, "");
        state.merge(SubmissionState { may_have_arrived: true, ..SubmissionState::default() });
        assert_eq!(state, SubmissionState { may_have_arrived: true, ..accepted(Finality::Sync, "") });
    }

    #[test]
    fn results_are_evicted_by_age_and_by_number_oldest_first() {
        let mut results = ResultCache::new(Duration::from_secs(10), 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (number, second) in [(1, 0), (2, 1), (3, 2), (1, 3), (4, 4)] {
            results.insert(hash(number), accepted(Finality::Sync, "x"), at(second));
        }
        assert_eq!(results.len(), 3);
        let known = |results: &ResultCache, second| {
            [1, 2, 3, 4].map(|number| results.get(&hash(number), at(second)).is_some())
        };
        assert_eq!(known(&results, 4), [true, false, true, true], "2 was the oldest");
        assert_eq!(known(&results, 12), [true, false, false, true]);
        results.insert(hash(5), accepted(Finality::Sync, "x"), at(30));
        assert_eq!((results.len(), results.order.len(), results.text_bytes), (1, 1, 1));
        for ms in 0..10_000 {
            results.insert(hash(5), accepted(Finality::Sync, "x"), at(30) + Duration::from_millis(ms / 2));
        }
        assert!(results.len() == 1 && results.order.len() < 2000, "{} updates", results.order.len());
    }

    #[test]
    fn long_texts_evict_older_results() {
        let mut results = ResultCache::new(Duration::from_secs(10), 100);
        let (now, long) = (Instant::now(), "x".repeat(MAX_TEXT_BYTES / 3));
        for number in 0..4 {
            results.insert(hash(number), accepted(Finality::Sync, &long), now);
        }
        assert_eq!(results.len(), 3);
        assert!(results.get(&hash(0), now).is_none() && results.get(&hash(3), now).is_some());
    }
}
