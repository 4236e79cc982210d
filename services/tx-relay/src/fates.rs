//! What became of transactions, by hash: for as long as the node's own cache would refuse a repeat (contract 5.3).

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use proto_msgs::v2::{SubmissionType, SubmitTransactionReply};
use tokio::time::Instant;

use mesh_transaction::TxHash;

/// Texts of nodes that are kept, in bytes; beyond that the oldest results are forgotten early.
const TEXT_BYTES: usize = 64 << 20;

/// How much an answer says: what one of some strength says, all weaker ones say too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// It was handed over.
    Async,
    /// It was checked.
    Sync,
    /// It was executed.
    Commit,
}

impl Strength {
    pub(crate) const ALL: [Self; 3] = [Self::Async, Self::Sync, Self::Commit];

    /// What a client wants to wait for: absent means TYPE_SYNC.
    pub(crate) fn wanted(kind: SubmissionType) -> Self {
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

/// What is known of a transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fate {
    /// The strongest answer so far.
    pub(crate) answer: Option<(Strength, SubmitTransactionReply)>,
    /// Whether it may have reached the node by a submission that was not answered.
    pub(crate) may_be_there: bool,
}

impl Fate {
    /// The answer to a submission of some strength. A refusal answers all: nothing can follow it.
    pub(crate) fn answer_to(&self, wanted: Strength) -> Option<&SubmitTransactionReply> {
        let (strength, reply) = self.answer.as_ref()?;
        (*strength >= wanted || !reply.success).then_some(reply)
    }

    /// Whether the node has accepted it, as far as known.
    pub(crate) fn is_accepted(&self) -> bool {
        self.answer.as_ref().is_some_and(|(_, reply)| reply.success)
    }

    /// Adds what has been learned since. A weaker answer changes nothing.
    fn learn(&mut self, later: Self) {
        self.may_be_there |= later.may_be_there;
        let strength = |fate: &Self| fate.answer.as_ref().map(|(strength, _)| *strength);
        if strength(&later) >= strength(self) && later.answer.is_some() {
            self.answer = later.answer;
        }
    }

    fn text_bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |(_, reply)| reply.data.len() + reply.log.len())
    }
}

/// The fates of the newest transactions.
#[derive(Debug)]
pub(crate) struct Fates {
    by_hash: HashMap<TxHash, Kept>,
    /// In the order in which something was learned. Entries that have moved on since count no more.
    order: VecDeque<(Instant, TxHash)>,
    text_bytes: usize,
    remember: Duration,
    at_most: usize,
}

#[derive(Debug)]
struct Kept {
    fate: Fate,
    since: Instant,
}

impl Fates {
    /// Remembers each for so long, and at most so many.
    pub(crate) fn new(remember: Duration, at_most: usize) -> Self {
        Self { by_hash: HashMap::new(), order: VecDeque::new(), text_bytes: 0, remember, at_most }
    }

    /// What is known of a transaction.
    pub(crate) fn of(&self, hash: &TxHash, now: Instant) -> Option<&Fate> {
        let kept = self.by_hash.get(hash)?;
        (now.duration_since(kept.since) < self.remember).then_some(&kept.fate)
    }

    /// Adds what has been learned of a transaction.
    pub(crate) fn learn(&mut self, hash: TxHash, learned: Fate, now: Instant) {
        self.forget_old(now);
        let kept = self.by_hash.entry(hash).or_insert_with(|| Kept { fate: Fate::default(), since: now });
        self.text_bytes -= kept.fate.text_bytes();
        kept.fate.learn(learned);
        kept.since = now;
        self.text_bytes += kept.fate.text_bytes();
        self.order.push_back((now, hash));
        while self.by_hash.len() > self.at_most || self.text_bytes > TEXT_BYTES {
            let Some((since, hash)) = self.order.pop_front() else { return };
            self.forget(&hash, since);
        }
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((since, hash)) = self.order.front().copied() {
            if now.duration_since(since) < self.remember {
                return;
            }
            self.order.pop_front();
            self.forget(&hash, since);
        }
    }

    fn forget(&mut self, hash: &TxHash, since: Instant) {
        if self.by_hash.get(hash).is_some_and(|kept| kept.since == since)
            && let Some(kept) = self.by_hash.remove(hash)
        {
            self.text_bytes -= kept.fate.text_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(strength: Strength, log: &str) -> Fate {
        let reply = SubmitTransactionReply {
            success: true,
            log: log.to_owned(),
            ..SubmitTransactionReply::default()
        };
        Fate { answer: Some((strength, reply)), may_be_there: false }
    }

    fn hash(number: u8) -> TxHash {
        TxHash::of(&[number])
    }

    #[test]
    fn an_answer_says_what_weaker_ones_say_and_a_refusal_all() {
        let sync = accepted(Strength::Sync, "");
        assert!(sync.answer_to(Strength::Async).is_some() && sync.answer_to(Strength::Sync).is_some());
        assert!(sync.answer_to(Strength::Commit).is_none());
        let refused =
            Fate { answer: Some((Strength::Sync, SubmitTransactionReply::default())), may_be_there: false };
        assert!(refused.answer_to(Strength::Commit).is_some());
        assert!(Fate { may_be_there: true, ..Fate::default() }.answer_to(Strength::Async).is_none());
    }

    #[test]
    fn a_later_answer_counts_unless_it_is_weaker() {
        let mut fates = Fates::new(Duration::from_secs(600), 10);
        let now = Instant::now();
        fates.learn(hash(1), accepted(Strength::Sync, "first"), now);
        fates.learn(hash(1), accepted(Strength::Async, "weaker"), now);
        fates.learn(hash(1), Fate { may_be_there: true, ..Fate::default() }, now);
        let fate = fates.of(&hash(1), now).unwrap();
        assert_eq!(fate.answer.as_ref().unwrap().1.log, "first");
        assert!(fate.may_be_there);
        fates.learn(hash(1), accepted(Strength::Commit, "stronger"), now);
        assert_eq!(fates.of(&hash(1), now).unwrap().answer.as_ref().unwrap().1.log, "stronger");
    }

    #[test]
    fn fates_are_forgotten_by_age_and_by_number_oldest_first() {
        let mut fates = Fates::new(Duration::from_secs(10), 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (number, second) in [(1, 0), (2, 1), (3, 2), (1, 3), (4, 4)] {
            fates.learn(hash(number), accepted(Strength::Sync, "x"), at(second));
        }
        assert_eq!(fates.len(), 3);
        let known =
            |fates: &Fates, second| [1, 2, 3, 4].map(|number| fates.of(&hash(number), at(second)).is_some());
        assert_eq!(known(&fates, 4), [true, false, true, true], "2 was the oldest");
        assert_eq!(known(&fates, 12), [true, false, false, true]);
        fates.learn(hash(5), accepted(Strength::Sync, "x"), at(30));
        assert_eq!((fates.len(), fates.order.len(), fates.text_bytes), (1, 1, 1));
    }

    #[test]
    fn long_texts_push_older_fates_out() {
        let mut fates = Fates::new(Duration::from_secs(10), 100);
        let (now, long) = (Instant::now(), "x".repeat(TEXT_BYTES / 3));
        for number in 0..4 {
            fates.learn(hash(number), accepted(Strength::Sync, &long), now);
        }
        assert_eq!(fates.len(), 3);
        assert!(fates.of(&hash(0), now).is_none() && fates.of(&hash(3), now).is_some());
    }
}
