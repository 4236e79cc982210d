//! What the relays sent to the node, by their own logs: each log has a line when a transaction is sent to the
//! node, and one when its submission is settled.

use std::collections::{HashMap, HashSet};

use mesh_transaction::TxHash;
use serde::Deserialize;

/// What the relays sent, summed over their logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RelayLog {
    /// How often each transaction was sent by all processes, queries about the node's cache included.
    pub(super) times: HashMap<TxHash, u64>,
    /// Number of relay processes.
    pub(super) lives: u64,
    /// Transactions that a process sent for the first time.
    pub(super) first: u64,
    /// Sent again by the same process because a client requested a stronger submission type.
    pub(super) stronger: u64,
    /// Sent again by the same process for another submission, after one with unknown result.
    pub(super) unknown: u64,
    /// Sent again by the same process for another submission, after one that the node did not take.
    pub(super) not_taken: u64,
    /// Sent again because the node had answered that it is in its cache, or might have lost it.
    pub(super) cached: u64,
    /// Descriptions of transactions sent again for no valid reason.
    pub(super) wrong: Vec<String>,
}

/// The members of a log line that are read here.
#[derive(Debug, Deserialize)]
struct Line {
    message: String,
    #[serde(default)]
    hash: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    asks_again: bool,
    #[serde(default)]
    outcome: String,
}

/// What one relay process knows about a transaction.
#[derive(Debug, Default)]
struct TransactionState {
    is_under_way: bool,
    is_sent: bool,
    /// Whether a submission ended with unknown result.
    is_unknown: bool,
    /// Strength of the strongest answer so far (see [`strength`]).
    answered: Option<u8>,
}

impl RelayLog {
    /// Adds the log of one replica, all its processes included, for these transactions.
    pub(super) fn read(&mut self, log: &str, of: &HashSet<TxHash>) {
        let mut process = HashMap::<TxHash, TransactionState>::new();
        for line in log.lines() {
            // A line truncated by a kill is followed by the next process's first line without a line break.
            let begins = line.rfind("{\"timestamp\"").unwrap_or_default();
            let Ok(line) = serde_json::from_str::<Line>(&line[begins..]) else { continue };
            if line.message == "started" {
                process.clear();
                self.lives += 1;
                continue;
            }
            let Ok(hash) = line.hash.parse::<TxHash>() else { continue };
            if !of.contains(&hash) {
                continue;
            }
            let known = process.entry(hash).or_default();
            let strength = strength(&line.kind);
            match &*line.message {
                "a transaction goes to the node" => {
                    *self.times.entry(hash).or_default() += 1;
                    if line.asks_again {
                        self.cached += 1;
                        continue;
                    }
                    match known {
                        TransactionState { is_under_way: true, .. } => {
                            self.wrong.push(format!("{hash} was sent while it was under way"));
                        }
                        TransactionState { answered: Some(answered), .. } if *answered >= strength => {
                            self.wrong.push(format!("{hash} was sent again though there was an answer"));
                        }
                        TransactionState { answered: Some(_), .. } => self.stronger += 1,
                        TransactionState { is_unknown: true, .. } => self.unknown += 1,
                        TransactionState { is_sent: true, .. } => self.not_taken += 1,
                        TransactionState { .. } => self.first += 1,
                    }
                    (known.is_under_way, known.is_sent) = (true, true);
                }
                "a submission is settled" => {
                    known.is_under_way = false;
                    known.is_unknown |= line.outcome == "unknown";
                    let answered = match &*line.outcome {
                        "accepted" => Some(strength),
                        // After a refusal the transaction must never be sent again.
                        "refused" => Some(u8::MAX),
                        _ => None,
                    };
                    known.answered = known.answered.max(answered);
                }
                _ => {}
            }
        }
    }
}

fn strength(kind: &str) -> u8 {
    match kind {
        "async" => 0,
        "sync" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> TxHash {
        TxHash::of(&[number])
    }

    fn goes(number: u8, kind: &str, asks_again: bool) -> String {
        format!(
            "{{\"timestamp\":\"t\",\"message\":\"a transaction goes to the node\",\"hash\":\"{}\",\
             \"kind\":\"{kind}\",\"asks_again\":{asks_again}}}",
            hash(number)
        )
    }

    fn settled(number: u8, kind: &str, outcome: &str) -> String {
        format!(
            "{{\"timestamp\":\"t\",\"message\":\"a submission is settled\",\"hash\":\"{}\",\
             \"kind\":\"{kind}\",\"outcome\":\"{outcome}\"}}",
            hash(number)
        )
    }

    fn sent(lines: &[String]) -> RelayLog {
        let mut sent = RelayLog::default();
        sent.read(&lines.join("\n"), &(0..9).map(hash).collect());
        sent
    }

    #[test]
    fn a_process_sends_once_unless_a_stronger_answer_is_requested_or_the_result_is_unknown() {
        let started = "{\"timestamp\":\"t\",\"message\":\"started\"}".to_owned();
        let lines = [
            started.clone(),
            goes(1, "async", false),
            settled(1, "async", "accepted"),
            goes(1, "sync", false),
            goes(1, "sync", true),
            settled(1, "sync", "accepted"),
            goes(2, "commit", false),
            settled(2, "commit", "unknown"),
            goes(2, "commit", false),
            goes(3, "async", false),
            settled(3, "async", "not_checked"),
            goes(3, "sync", false),
            // A transaction that is not of interest, and a line truncated by a kill.
            goes(77, "sync", false),
            format!("{{\"timestamp\":\"t\",\"mess{started}"),
            goes(1, "sync", false),
        ];
        let found = sent(&lines);
        assert_eq!((found.lives, found.first, found.stronger, found.cached), (2, 4, 1, 1));
        assert_eq!((found.unknown, found.not_taken), (1, 1));
        assert_eq!((found.times[&hash(1)], found.times[&hash(2)], found.times.len()), (4, 2, 3));
        assert!(found.wrong.is_empty(), "{found:?}");
    }

    #[test]
    fn a_second_one_at_once_or_after_an_answer_is_wrong() {
        let at_once = [goes(1, "sync", false), goes(1, "sync", false)];
        assert_eq!(sent(&at_once).wrong.len(), 1);
        for (kind, outcome, again) in
            [("sync", "accepted", "sync"), ("commit", "accepted", "async"), ("async", "refused", "commit")]
        {
            let lines = [goes(1, kind, false), settled(1, kind, outcome), goes(1, again, false)];
            assert_eq!(sent(&lines).wrong.len(), 1, "{kind} {outcome} {again}");
        }
    }
}
