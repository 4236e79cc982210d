//! Clients without patience: what they submit is decided by the seed, what they are told is kept.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{SubmissionType, SubmitTransactionRequest, Transaction};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use reqwest::Client;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::Plan;
use crate::failure::Failure;
use crate::private::cannot;
use crate::private_node::Maker;

/// How far back an impatient client's repeat reaches.
const RECENT: usize = 40;
/// How many submissions of a hundred are of one that was submitted before.
const REPEATED_PERCENT: u32 = 30;
/// How many clients of a hundred do not wait, and for how long at most the others of them do.
const LEAVING_PERCENT: u32 = 20;
const LEAVES_WITHIN_MS: std::ops::Range<u64> = 1..80;
/// Longer than any answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of so many transactions one has no proof of work, which the node refuses.
const BAD_ONE_OF: usize = 10;
const KINDS: [SubmissionType; 4] = [
    SubmissionType::TypeAsync,
    SubmissionType::TypeSync,
    SubmissionType::TypeSync,
    SubmissionType::TypeCommit,
];

/// What a client was told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    /// It is accepted.
    Accepted,
    /// It is refused, with this code.
    Refused(u64),
    /// 504: nobody knows.
    Unknown,
    /// 429 or 503: it was not handed over.
    NotTaken(u16),
    /// The client did not wait.
    Left,
    /// Something that no client should be told.
    Other(String),
}

/// A transaction and what its clients were told.
pub(super) struct Submitted {
    pub(super) hash: TxHash,
    /// Whether the node must refuse it.
    pub(super) is_bad: bool,
    pub(super) told: Vec<Told>,
}

/// The clients of one run.
pub(super) struct Crowd {
    client: Client,
    url: String,
    plan: Plan,
    txs: Vec<Transaction>,
    told: RefCell<BTreeMap<usize, Vec<Told>>>,
    /// Submissions so far.
    turns: Cell<usize>,
    /// Transactions that were submitted so far.
    fresh: Cell<usize>,
}

impl Crowd {
    pub(super) fn new(edge: SocketAddr, plan: Plan, seed: u64) -> Result<Self, Failure> {
        let client = Client::builder().no_proxy().timeout(PATIENCE).build();
        let client = client.map_err(|error| cannot("make an HTTP client", &error))?;
        let maker = Maker::new(seed);
        let distinct = plan.submissions * (100 - REPEATED_PERCENT as usize) / 100;
        let txs = (0..distinct).map(|turn| {
            let mut tx = maker.transaction();
            if turn % BAD_ONE_OF == 0 {
                tx.pow = None;
            }
            tx
        });
        Ok(Self {
            client,
            url: format!("http://{edge}/transaction"),
            plan,
            txs: txs.collect(),
            told: RefCell::default(),
            turns: Cell::new(0),
            fresh: Cell::new(0),
        })
    }

    /// Submits all, and goes on until enough has happened besides.
    pub(super) async fn submit(&self, seed: u64, is_enough: impl Fn() -> bool) {
        let is_enough = &is_enough;
        let clients = (0..self.plan.clients).map(|client| async move {
            let mut random = SmallRng::seed_from_u64(seed ^ client.rotate_left(32));
            while self.turns.replace(self.turns.get() + 1) < self.plan.submissions || !is_enough() {
                let which = self.chosen(&mut random);
                let kind = KINDS[random.random_range(0..KINDS.len())];
                let leaves = random.random_range(0..100) < LEAVING_PERCENT;
                let patience = leaves.then(|| Duration::from_millis(random.random_range(LEAVES_WITHIN_MS)));
                let said = self.submit_one(&self.txs[which], kind, patience).await;
                self.told.borrow_mut().entry(which).or_default().push(said);
                sleep(self.plan.pause.mul_f64(random.random())).await;
            }
        });
        join_all(clients).await;
    }

    /// A new transaction, or one of those that were submitted just now.
    fn chosen(&self, random: &mut SmallRng) -> usize {
        let known = self.fresh.get();
        let is_repeat = random.random_range(0..100) < REPEATED_PERCENT;
        if known >= self.txs.len() || (is_repeat && known > 0) {
            return random.random_range(known.saturating_sub(RECENT)..known);
        }
        self.fresh.set(known + 1);
        known
    }

    async fn submit_one(&self, tx: &Transaction, kind: SubmissionType, patience: Option<Duration>) -> Told {
        let request = SubmitTransactionRequest { tx: Some(tx.clone()), r#type: kind.into() };
        let asked = async {
            let answer = self.client.post(&self.url).json(&request).send().await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
        };
        match timeout(patience.unwrap_or(PATIENCE), asked).await {
            Err(_) if patience.is_some() => Told::Left,
            Err(_) => Told::Other(format!("no answer within {PATIENCE:?}")),
            Ok(Err(error)) => Told::Other(error.to_string()),
            Ok(Ok((status, body))) => told(status, &body),
        }
    }

    /// What was submitted so far.
    pub(super) fn submitted(self) -> Vec<Submitted> {
        let told = self.told.into_inner();
        let of_one = |(which, told): (usize, Vec<Told>)| {
            let tx = &self.txs[which];
            Submitted { hash: TxHash::of(&encode(tx)), is_bad: tx.pow.is_none(), told }
        };
        told.into_iter().map(of_one).collect()
    }
}

/// What an answer tells.
fn told(status: u16, body: &str) -> Told {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    match (status, json["success"].as_bool(), json["code"].as_u64()) {
        (200, Some(true), Some(0)) => Told::Accepted,
        (200, Some(false), Some(code @ 1..)) => Told::Refused(code),
        (504, ..) => Told::Unknown,
        (status @ (429 | 503), ..) => Told::NotTaken(status),
        _ => Told::Other(format!("{status} {body}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_contract_has_is_an_answer() {
        let of = told;
        assert_eq!(of(200, r#"{"success":true,"code":0}"#), Told::Accepted);
        assert_eq!(of(200, r#"{"success":false,"code":89}"#), Told::Refused(89));
        assert_eq!((of(504, "{}"), of(503, "")), (Told::Unknown, Told::NotTaken(503)));
        for (status, body) in [(200, r#"{"success":true,"code":89}"#), (200, "{}"), (500, "{}"), (409, "{}")]
        {
            assert!(matches!(of(status, body), Told::Other(_)), "{status} {body}");
        }
    }
}
