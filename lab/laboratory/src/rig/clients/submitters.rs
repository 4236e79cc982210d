//! Clients that submit transactions. The seed decides what they submit, how often they repeat it and when
//! they disconnect early; every outcome is recorded.

use std::{cell::RefCell, collections::BTreeMap, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use mesh::failure::{Failure, cannot};
use mesh_problem::error_chain;
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{SubmissionType, SubmitTransactionRequest, Transaction};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use reqwest::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{connection::KEY, followers::Followers};
use crate::private_chain::TransactionFactory;

/// A repeated submission is of one of the last so many transactions.
const RECENT: usize = 40;
/// Percentage of submissions that repeat an earlier transaction.
const REPEATED_PERCENT: u32 = 30;
/// Percentage of submissions whose client disconnects early, and after how many milliseconds.
const LEAVING_PERCENT: u32 = 20;
const LEAVES_WITHIN_MS: std::ops::Range<u64> = 1..80;
/// Client timeout: longer than any answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A connection idle for this long is not used again. An edge that stops keeps idle connections open for only
/// a second or two.
const IDLE: Duration = Duration::from_millis(500);
/// One of this many transactions has no proof of work, so that the node refuses it.
const BAD_ONE_OF: usize = 10;
/// Part of the error text for a transaction that was handed over and is in no block in time.
const NO_BLOCK: &str = "the transaction is in no block so far";
/// Part of the edge's error text when a relay that waits for a block is stopped, and killed after its grace
/// period: drills configure a shorter grace period than such a wait.
const NO_ANSWER: &str = "did not answer in time; what became of the request is unknown";
/// Part of the error text for a transaction that the node refuses and that an earlier submission left open.
const OPEN_BEFORE: &str = "but may have it from an earlier submission";
const KINDS: [SubmissionType; 4] = [
    SubmissionType::TypeAsync,
    SubmissionType::TypeSync,
    SubmissionType::TypeSync,
    SubmissionType::TypeCommit,
];

/// The outcome of a submission, as its client sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubmissionOutcome {
    Accepted,
    /// Refused with this code.
    Refused(u64),
    /// 504: the result is unknown.
    Unknown,
    /// 504 for a transaction that the node refuses, in two cases. It had been handed over unchecked before, and a commit
    /// waits for its block without asking the node again (contract 5.3). Or an earlier submission of it got no answer,
    /// and stays open.
    Unchecked,
    /// 429 or 503: it was not handed over.
    NotTaken(u16),
    /// The client disconnected early.
    Left,
    /// The connection broke; the result is unknown.
    Lost(String),
    /// An answer that violates the contract.
    Other(String),
}

impl SubmissionOutcome {
    /// Whether it is a definite answer, caused by the client itself, or provided for by the contract.
    fn is_definite(&self) -> bool {
        matches!(self, Self::Accepted | Self::Refused(_) | Self::Left | Self::Unchecked)
    }
}

/// Size of the submission load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Least number of submissions.
    pub(crate) submissions: usize,
    /// Number of clients, each with one submission at a time.
    pub(crate) clients: u64,
    /// Longest pause of a client between two submissions.
    pub(crate) pause: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct IndefiniteSubmission {
    /// When it was sent, and when it ended.
    pub(crate) when: (Instant, Instant),
    pub(crate) outcome: SubmissionOutcome,
    /// The body of the answer.
    pub(crate) message: String,
}

/// A transaction and the outcomes of all its submissions.
pub(crate) struct Submitted {
    pub(crate) hash: TxHash,
    /// Whether the node must refuse it.
    pub(crate) is_bad: bool,
    pub(crate) outcomes: Vec<SubmissionOutcome>,
}

/// The clients of one run.
pub(crate) struct Submitters {
    client: Client,
    url: String,
    plan: Plan,
    factory: TransactionFactory,
    followers: Option<Followers>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    txs: Vec<Transaction>,
    /// The outcomes of all submissions, by index of the transaction.
    outcomes: BTreeMap<usize, Vec<SubmissionOutcome>>,
    /// Number of submissions so far.
    turns: usize,
    /// Numbers of requests sent and of answers received.
    counts: (u64, u64),
    indefinite: Vec<IndefiniteSubmission>,
}

impl Submitters {
    pub(crate) fn new(edge: SocketAddr, plan: Plan, seed: u64) -> Result<Self, Failure> {
        let client = Client::builder().no_proxy().timeout(TIMEOUT).pool_idle_timeout(IDLE).build();
        let client = client.map_err(|error| cannot("make an HTTP client", &error))?;
        Ok(Self {
            client,
            url: format!("http://{edge}/transaction"),
            plan,
            factory: TransactionFactory::new(seed),
            followers: None,
            state: RefCell::default(),
        })
    }

    /// Each client follows its transaction after each submission.
    pub(crate) fn following(self, edge: SocketAddr) -> Self {
        let followers = Some(Followers::new(self.client.clone(), edge));
        Self { followers, ..self }
    }

    /// What the clients found that followed their transactions.
    pub(crate) fn followers(&self) -> Option<&Followers> {
        self.followers.as_ref()
    }

    /// Submits at least the planned number, and until `is_enough` returns true.
    pub(crate) async fn submit(&self, seed: u64, is_enough: impl Fn() -> bool) {
        let is_enough = &is_enough;
        let clients = (0..self.plan.clients).map(|client| async move {
            let mut random = SmallRng::seed_from_u64(seed ^ client.rotate_left(32));
            while self.begin_turn() < self.plan.submissions || !is_enough() {
                let (which, tx) = self.chosen(&mut random);
                let kind = KINDS[random.random_range(0..KINDS.len())];
                let leaves = random.random_range(0..100) < LEAVING_PERCENT;
                let disconnect_after =
                    leaves.then(|| Duration::from_millis(random.random_range(LEAVES_WITHIN_MS)));
                let begun = Instant::now();
                let (hash, is_bad) = (TxHash::of(&encode(&tx)), tx.pow.is_none());
                let (mut outcome, message) = self.submit_one(tx, kind, disconnect_after).await;
                {
                    let mut state = self.state.borrow_mut();
                    if is_bad && is_unchecked(kind, &outcome, &message, state.outcomes.get(&which)) {
                        outcome = SubmissionOutcome::Unchecked;
                    }
                    if !outcome.is_definite() {
                        let (when, outcome) = ((begun, Instant::now()), outcome.clone());
                        state.indefinite.push(IndefiniteSubmission { when, outcome, message });
                    }
                    state.outcomes.entry(which).or_default().push(outcome.clone());
                }
                if let Some(followers) = &self.followers {
                    followers.follow(hash, &outcome).await;
                }
                sleep(self.plan.pause.mul_f64(random.random())).await;
            }
        });
        join_all(clients).await;
    }

    /// Counts a submission; returns how many there were before it.
    fn begin_turn(&self) -> usize {
        let mut state = self.state.borrow_mut();
        state.turns += 1;
        state.turns - 1
    }

    /// A new transaction or a recently submitted one, with its index.
    fn chosen(&self, random: &mut SmallRng) -> (usize, Transaction) {
        let mut state = self.state.borrow_mut();
        let txs = &mut state.txs;
        let known = txs.len();
        if known > 0 && random.random_range(0..100) < REPEATED_PERCENT {
            let which = random.random_range(known.saturating_sub(RECENT)..known);
            return (which, txs[which].clone());
        }
        let mut tx = self.factory.transaction();
        if known.is_multiple_of(BAD_ONE_OF) {
            tx.pow = None;
        }
        txs.push(tx.clone());
        (known, tx)
    }

    async fn submit_one(
        &self,
        tx: Transaction,
        kind: SubmissionType,
        disconnect_after: Option<Duration>,
    ) -> (SubmissionOutcome, String) {
        self.state.borrow_mut().counts.0 += 1;
        let request = SubmitTransactionRequest { tx: Some(tx), r#type: kind.into() };
        let asked = async {
            let answer = self.client.post(&self.url).bearer_auth(KEY).json(&request).send().await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
        };
        match timeout(disconnect_after.unwrap_or(TIMEOUT), asked).await {
            Err(_) if disconnect_after.is_some() => (SubmissionOutcome::Left, String::new()),
            Err(_) => (SubmissionOutcome::Other(format!("no answer within {TIMEOUT:?}")), String::new()),
            Ok(Err(error)) => (SubmissionOutcome::Lost(error_chain(&error)), String::new()),
            Ok(Ok((status, body))) => {
                self.state.borrow_mut().counts.1 += 1;
                (outcome_of(status, &body), body)
            }
        }
    }

    /// Numbers of submissions sent and of answers received.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.state.borrow().counts
    }

    pub(crate) fn indefinite(&self) -> Vec<IndefiniteSubmission> {
        self.state.borrow().indefinite.clone()
    }

    /// All submitted transactions with their outcomes.
    pub(crate) fn submitted(self) -> Vec<Submitted> {
        let State { txs, outcomes, .. } = self.state.into_inner();
        let of_one = |(which, outcomes): (usize, Vec<SubmissionOutcome>)| {
            let tx: &Transaction = &txs[which];
            Submitted { hash: TxHash::of(&encode(tx)), is_bad: tx.pow.is_none(), outcomes }
        };
        outcomes.into_iter().map(of_one).collect()
    }
}

/// Whether the outcome of a transaction that the node refuses is unknown because of an earlier submission: a client
/// waited for its block, since it may have been handed over unchecked, or the earlier submission got no answer. `earlier`
/// are the outcomes of the earlier submissions.
fn is_unchecked(
    kind: SubmissionType,
    outcome: &SubmissionOutcome,
    message: &str,
    earlier: Option<&Vec<SubmissionOutcome>>,
) -> bool {
    let waited = kind == SubmissionType::TypeCommit
        && [NO_BLOCK, NO_ANSWER].iter().any(|words| message.contains(words));
    let may_be_handed_over = |outcome: &SubmissionOutcome| match outcome {
        SubmissionOutcome::Accepted => waited,
        SubmissionOutcome::Unknown | SubmissionOutcome::Left | SubmissionOutcome::Lost(_) => true,
        _ => false,
    };
    *outcome == SubmissionOutcome::Unknown
        && (waited || message.contains(OPEN_BEFORE))
        && earlier.is_some_and(|earlier| earlier.iter().any(may_be_handed_over))
}

fn outcome_of(status: u16, body: &str) -> SubmissionOutcome {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    match (status, json["success"].as_bool(), json["code"].as_u64()) {
        (200, Some(true), Some(0)) => SubmissionOutcome::Accepted,
        (200, Some(false), Some(code @ 1..)) => SubmissionOutcome::Refused(code),
        (504, ..) => SubmissionOutcome::Unknown,
        (status @ (429 | 503), ..) => SubmissionOutcome::NotTaken(status),
        _ => SubmissionOutcome::Other(format!("{status} {body}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_contract_has_is_an_answer() {
        use SubmissionOutcome::{Accepted, NotTaken, Other, Refused, Unknown};
        let of = outcome_of;
        assert_eq!(of(200, r#"{"success":true,"code":0}"#), Accepted);
        assert_eq!(of(200, r#"{"success":false,"code":89}"#), Refused(89));
        assert_eq!((of(504, "{}"), of(503, "")), (Unknown, NotTaken(503)));
        for (status, body) in [(200, r#"{"success":true,"code":89}"#), (200, "{}"), (500, "{}"), (409, "{}")]
        {
            assert!(matches!(of(status, body), Other(_)), "{status} {body}");
        }
    }

    #[test]
    fn only_after_an_earlier_hand_over_may_a_refused_transaction_end_unchecked() {
        use SubmissionOutcome::{Accepted, NotTaken, Refused, Unknown};
        use SubmissionType::{TypeCommit, TypeSync};
        let body = format!("{{\"message\":\"{NO_BLOCK}; it may still be included\"}}");
        let (handed_over, never) = (vec![Accepted], vec![NotTaken(503), Refused(89)]);
        let is = |kind, outcome, message: &str, earlier| is_unchecked(kind, &outcome, message, earlier);
        assert!(is(TypeCommit, Unknown, &body, Some(&handed_over)));
        assert!(is(TypeCommit, Unknown, NO_ANSWER, Some(&handed_over)));
        assert!(!is(TypeCommit, Unknown, &body, Some(&never)));
        assert!(!is(TypeCommit, Unknown, NO_ANSWER, Some(&never)));
        assert!(!is(TypeCommit, Unknown, &body, None));
        assert!(!is(TypeCommit, Unknown, "the node broke off", Some(&handed_over)));
        assert!(!is(TypeCommit, NotTaken(503), &body, Some(&handed_over)));
        assert!(!is(TypeSync, Unknown, &body, Some(&handed_over)));
        let (open, lost) = (format!("{{\"message\":\"{OPEN_BEFORE}\"}}"), vec![Unknown]);
        assert!(is(TypeSync, Unknown, &open, Some(&lost)));
        assert!(!is(TypeSync, Unknown, &open, Some(&never)));
    }
}
