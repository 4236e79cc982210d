//! What the replicas of the relay share, so that they answer as one: each result of a submission is announced to
//! all of them, and a replica that does not know a transaction to be in a block asks the others.

use std::{cell::OnceCell, rc::Rc, time::Duration};

use actix::{Addr, Context, Handler};
use futures_util::StreamExt;
use mesh_bus::{Announcement, AnswerFuture, Ask, Bus, FromOthers, RELAY_RESULTS};
use mesh_transaction::TxHash;
use proto_msgs::{Operation, v2::SubmitTransactionReply};
use serde::{Deserialize, Serialize};

use crate::{
    WORKLOAD,
    relay::{Learn, Relay},
    result_cache::{Finality, SubmissionState},
};

/// Longest time to wait for the other replicas' answers.
const RECALL_TIMEOUT: Duration = Duration::from_millis(500);

/// The same for all their results, when a replica starts.
const RECALL_ALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Most bytes of a text of the node that is announced, so that an announcement fits into one message.
const MAX_ANNOUNCED_TEXT: usize = 32 << 10;

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
        }
    }

    fn into_state(self) -> Option<(TxHash, SubmissionState)> {
        let finality = Finality::ALL.into_iter().find(|finality| *finality as u32 == self.finality);
        let answer = finality.zip(self.reply);
        let Self { hash, asked_again, may_have_arrived, .. } = self;
        Some((hash.parse().ok()?, SubmissionState { answer, asked_again, may_have_arrived }))
    }

    fn text_bytes(&self) -> usize {
        self.reply.as_ref().map_or(0, |reply| reply.data.len() + reply.log.len())
    }
}

impl RelayResults {
    fn into_states(self) -> Vec<(TxHash, SubmissionState)> {
        self.results.into_iter().filter_map(SharedResult::into_state).collect()
    }
}

/// The replicas of the relay.
#[derive(Clone)]
pub(crate) struct Peers {
    bus: Bus,
    /// The name of this replica.
    own: Rc<OnceCell<String>>,
}

/// The other replicas' results for a transaction.
pub(crate) struct Recalled {
    pub(crate) state: SubmissionState,
    /// Whether a replica may be there that did not answer.
    pub(crate) is_partial: bool,
}

impl Peers {
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, own: Rc::default() }
    }

    /// Announces a result to the other replicas, or to those that know the transaction.
    pub(crate) async fn share(&self, hash: &TxHash, state: &SubmissionState, is_for_known: bool) {
        let mut result = SharedResult::of(hash, state);
        if let Some(reply) = &mut result.reply {
            for text in [&mut reply.data, &mut reply.log] {
                text.truncate(text.floor_char_boundary(MAX_ANNOUNCED_TEXT));
            }
        }
        self.bus.announce(&RelayResults { results: vec![result], is_for_known }).await;
    }

    /// Requests the result for a transaction from every other replica.
    pub(crate) async fn recall(&self, hash: &TxHash) -> Recalled {
        let request = RecallTransactions { hash: hash.to_string() };
        let FromOthers { replies, is_partial } = self.ask_others(&request, RECALL_TIMEOUT).await;
        let mut state = SubmissionState::default();
        for (of, known) in replies.into_iter().flat_map(RelayResults::into_states) {
            if of == *hash {
                state.merge(known);
            }
        }
        Recalled { state, is_partial }
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
        self.bus.until_replicas_are_known().await;
        let known = self.ask_others(&RecallTransactions::default(), RECALL_ALL_TIMEOUT).await;
        for results in known.replies {
            // Fails only when the relay has stopped.
            let _ = relay.send(Learn { states: results.into_states(), is_for_known: false }).await;
        }
    }
}

impl Handler<Ask<RecallTransactions>> for Relay {
    type Result = AnswerFuture<RelayResults>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<RecallTransactions>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let results = match request.hash.parse::<TxHash>() {
            Ok(hash) => vec![SharedResult::of(&hash, &self.state(&hash))],
            Err(_) => {
                let newest = self.newest_results().map(|(hash, state)| SharedResult::of(hash, state));
                let fits = newest.scan(0, |bytes, result| {
                    *bytes += result.text_bytes();
                    (*bytes <= MAX_RECALLED_TEXT).then_some(result)
                });
                fits.collect()
            }
        };
        scope.run(std::future::ready(Ok(RelayResults { results, is_for_known: false }.into())))
    }
}
