//! What the replicas of the relay share, so that they answer as one: each result of a submission is announced to
//! all of them, and a replica that does not know a transaction to be in a block asks the others.

use std::{
    cell::{Cell, OnceCell},
    rc::Rc,
    time::Duration,
};

use actix::{Addr, Context, Handler};
use futures_util::StreamExt;
use mesh_bus::{Announcement, AnswerFuture, Ask, Bus, FromOthers, RELAY_RESULTS};
use mesh_transaction::TxHash;
use proto_msgs::{Operation, v2::SubmitTransactionReply};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{
    WORKLOAD,
    relay::{Learn, Learned, Relay},
    result_cache::{Finality, SubmissionState},
};

/// Longest time to wait for the other replicas' answers.
const RECALL_TIMEOUT: Duration = Duration::from_millis(500);

/// The same for all their results, when a replica starts; up to 16 MiB each.
const RECALL_ALL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a replica that starts waits for what every other one knows.
const JOIN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long after that an unknown transaction is 503, because a replica that did not answer may know it.
const MISSED_FOR: Duration = Duration::from_secs(60);

/// Most bytes of a text of the node that is announced, so that an announcement fits into one message. Reads have no more of
/// it, so that all replicas answer alike.
pub(crate) const MAX_ANNOUNCED_TEXT: usize = 32 << 10;

/// Most bytes of texts in the answer to a replica that starts.
const MAX_RECALLED_TEXT: usize = 16 << 20;

/// Requests a replica's result for a transaction, or for all submitted ones when `hash` is empty.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RecallTransactions {
    #[prost(string, tag = "1")]
    hash: String,
}

impl Operation for RecallTransactions {
    type Reply = RelayResults;
    const WORKLOAD: &'static str = WORKLOAD;
    const NAME: &'static str = "RecallTransactions";
}

/// States of transactions.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
pub(crate) struct RelayResults {
    #[prost(message, repeated, tag = "1")]
    results: Vec<SharedResult>,
    /// Whether a replica that does not know a transaction ignores it: a client that reads many old ones would evict the
    /// results of submissions.
    #[prost(bool, tag = "2")]
    #[serde(default)]
    is_for_known: bool,
    /// Every replica that the sender knows, in the answer to one that starts.
    #[prost(string, repeated, tag = "3")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replicas: Vec<String>,
}

impl Announcement for RelayResults {
    const TOPIC: &'static str = RELAY_RESULTS;
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
struct SharedResult {
    #[prost(string, tag = "1")]
    hash: String,
    /// [`Finality`] of the reply; 0 without one.
    #[prost(uint32, tag = "2")]
    finality: u32,
    #[prost(message, optional, tag = "3")]
    reply: Option<SubmitTransactionReply>,
    #[prost(bool, tag = "4")]
    may_have_arrived: bool,
    #[prost(uint32, tag = "5")]
    #[serde(default)]
    asked_again: u32,
    /// Whether it was read and not submitted.
    #[prost(bool, tag = "6")]
    #[serde(default)]
    is_reported: bool,
}

impl SharedResult {
    fn of(hash: &TxHash, state: &SubmissionState) -> Self {
        let (finality, reply) = state.answer.clone().unzip();
        Self {
            hash: hash.to_string(),
            finality: finality.map_or(0, |finality| finality as u32),
            reply,
            may_have_arrived: state.may_have_arrived,
            asked_again: state.asked_again,
            is_reported: false,
        }
    }

    /// The state of a transaction that was read and not submitted.
    fn reported(hash: &TxHash, state: &SubmissionState) -> Self {
        Self { is_reported: true, ..Self::of(hash, state) }
    }

    fn into_state(self) -> Option<Learned> {
        let finality = Finality::ALL.into_iter().find(|finality| *finality as u32 == self.finality);
        let answer = finality.zip(self.reply);
        let Self { hash, asked_again, may_have_arrived, is_reported, .. } = self;
        let state = SubmissionState { answer, asked_again, may_have_arrived };
        Some(Learned { hash: hash.parse().ok()?, state, is_reported })
    }

    fn text_bytes(&self) -> usize {
        self.reply.as_ref().map_or(0, |reply| reply.data.len() + reply.log.len())
    }
}

impl RelayResults {
    fn into_states(self) -> Vec<Learned> {
        self.results.into_iter().filter_map(SharedResult::into_state).collect()
    }
}

/// The replicas of the relay.
#[derive(Clone)]
pub(crate) struct Peers {
    bus: Bus,
    /// The name of this replica.
    own: Rc<OnceCell<String>>,
    /// Whether a replica may be there whose name is not known.
    misses_one: Rc<Cell<bool>>,
}

/// The other replicas' results for a transaction.
pub(crate) struct Recalled {
    pub(crate) state: SubmissionState,
    /// Whether a replica may be there that did not answer.
    pub(crate) is_partial: bool,
}

impl Peers {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, own: Rc::default(), misses_one: Rc::default() }
    }

    /// Announces a result to the other replicas, or to those that know the transaction.
    pub(crate) async fn share(&self, hash: &TxHash, state: &SubmissionState, is_for_known: bool) {
        self.announce(SharedResult::of(hash, state), is_for_known).await;
    }

    /// Announces the state of a transaction that no replica knew and a client receives, so that it is not forgotten
    /// with this replica.
    pub(crate) async fn share_reported(&self, hash: &TxHash, state: &SubmissionState) {
        self.announce(SharedResult::reported(hash, state), false).await;
    }

    async fn announce(&self, mut result: SharedResult, is_for_known: bool) {
        if let Some(reply) = &mut result.reply {
            for text in [&mut reply.data, &mut reply.log] {
                text.truncate(text.floor_char_boundary(MAX_ANNOUNCED_TEXT));
            }
        }
        self.bus.announce(&RelayResults { results: vec![result], is_for_known, replicas: Vec::new() }).await;
    }

    /// Requests the result for a transaction from every other replica.
    pub(crate) async fn recall(&self, hash: &TxHash) -> Recalled {
        let request = RecallTransactions { hash: hash.to_string() };
        let FromOthers { replies, is_partial } = self.ask_others(&request, RECALL_TIMEOUT).await;
        let mut state = SubmissionState::default();
        for learned in replies.into_iter().flat_map(RelayResults::into_states) {
            if learned.hash == *hash {
                state.merge(learned.state);
            }
        }
        Recalled { state, is_partial: is_partial || self.misses_one.get() }
    }

    /// The other replicas that are known.
    fn names(&self) -> Vec<String> {
        self.bus.known_replicas(WORKLOAD)
    }

    async fn ask_others(&self, request: &RecallTransactions, limit: Duration) -> FromOthers<RelayResults> {
        let own = self.own.get().map_or("", String::as_str);
        self.bus.ask_others(own, request, limit).await
    }

    /// Starts to take the results of the other replicas, and learns their earlier ones. Resolves when this replica,
    /// whose name is `own`, may answer.
    pub(crate) async fn join(self, relay: Addr<Relay>, own: String) {
        let _ = self.own.set(own);
        let learned = relay.clone();
        match self.bus.subscribe::<RelayResults>().await {
            Ok(mut results) => {
                actix::spawn(async move {
                    while let Some(results) = results.next().await {
                        let is_for_known = results.is_for_known;
                        if learned.send(Learn { states: results.into_states(), is_for_known }).await.is_err()
                        {
                            return;
                        }
                    }
                });
            }
            Err(error) => tracing::error!(%error, "cannot subscribe to the results of other replicas"),
        }
        let deadline = Instant::now() + JOIN_TIMEOUT;
        let are_known = self.bus.others_are_known(WORKLOAD, JOIN_TIMEOUT).await;
        let misses_one = Rc::clone(&self.misses_one);
        misses_one.set(!are_known);
        let mut until_learned = Box::pin(async move {
            while !self.learn_all(&relay, are_known).await {
                sleep(RECALL_TIMEOUT).await;
            }
            self.misses_one.set(false);
        });
        if timeout_at(deadline, &mut until_learned).await.is_ok() {
            return;
        }
        tracing::warn!("another replica does not say which transactions it knows");
        actix::spawn(async move {
            let _ = timeout(MISSED_FOR, until_learned).await;
            misses_one.set(false);
        });
    }

    /// Learns the results and the names that the other known replicas know; returns whether all of them answered. When
    /// not all are known, at least one.
    async fn learn_all(&self, relay: &Addr<Relay>, are_all_known: bool) -> bool {
        let FromOthers { replies, is_partial } =
            self.ask_others(&RecallTransactions::default(), RECALL_ALL_TIMEOUT).await;
        let is_complete = !is_partial && (are_all_known || !replies.is_empty());
        for mut results in replies {
            let own = self.own.get();
            results.replicas.retain(|name| Some(name) != own);
            self.bus.learn_replicas(WORKLOAD, &results.replicas);
            // Fails only when the relay has stopped.
            let _ = relay.send(Learn { states: results.into_states(), is_for_known: false }).await;
        }
        is_complete
    }
}

impl Handler<Ask<RecallTransactions>> for Relay {
    type Result = AnswerFuture<RelayResults>;

    fn handle(&mut self, ask: Ask<RecallTransactions>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let mut replicas = Vec::new();
        let results = match request.hash.parse::<TxHash>() {
            Ok(hash) => vec![SharedResult::of(&hash, &self.state(&hash))],
            Err(_) => {
                replicas = self.peers.names();
                let newest = self.newest_results().map(|(hash, state)| SharedResult::of(hash, state));
                let reported =
                    self.reported_pending().map(|(hash, state)| SharedResult::reported(hash, state));
                let fits = newest.chain(reported).scan(0, |bytes, result| {
                    *bytes += result.text_bytes();
                    (*bytes <= MAX_RECALLED_TEXT).then_some(result)
                });
                fits.collect()
            }
        };
        scope.run(std::future::ready(Ok(RelayResults { results, is_for_known: false, replicas }.into())))
    }
}
