//! GetTransaction: the state of a transaction by its hash. Sources are this replica's memory, the node's index,
//! the memory of every other replica, and the node's mempool.

use actix::{Addr, AsyncContext, Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_problem::{Code, MALFORMED, Problem};
use mesh_transaction::TxHash;
use proto_msgs::{
    numbers::get_transaction::NODE,
    v2::{GetTransactionReply, GetTransactionRequest, SubmitTransactionReply, get_transaction_reply::Status},
};

use crate::{
    Relay,
    node::{CallError, Nodes, Refusal},
    peers::{MAX_ANNOUNCED_TEXT, Peers},
    relay::{GetState, Learn, Learned, Reported},
    result_cache::{Finality, SubmissionState},
};

/// The log when the node cannot say whether a block has the transaction.
const NO_INDEX: &str = "the node keeps no transaction index: blocks cannot be searched for the transaction";

impl Handler<Ask<GetTransactionRequest>> for Relay {
    type Result = AnswerFuture<GetTransactionReply>;

    fn handle(&mut self, ask: Ask<GetTransactionRequest>, context: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let search =
            Search { nodes: self.nodes.clone(), peers: self.peers.clone(), relay: context.address() };
        scope.run(async move {
            let hash = request
                .hash
                .parse::<TxHash>()
                .map_err(|_| Problem::invalid(MALFORMED, "hash must be 64 hex digits"))?;
            let Found { state, has_no_index } = search.find(&hash).await?;
            let (status, SubmitTransactionReply { height, code, mut log, .. }) = reply(state);
            if has_no_index && log.is_empty() && status != Status::Included {
                NO_INDEX.clone_into(&mut log);
            }
            log.truncate(log.floor_char_boundary(MAX_ANNOUNCED_TEXT));
            let tx_hash = hash.to_string();
            Ok(GetTransactionReply { tx_hash, status: status.into(), height, code, log }.into())
        })
    }
}

/// Where the state of a transaction is looked for.
struct Search {
    nodes: Nodes,
    peers: Peers,
    relay: Addr<Relay>,
}

/// The state of a transaction.
struct Found {
    state: SubmissionState,
    /// Whether the node keeps no transaction index.
    has_no_index: bool,
}

impl Search {
    /// Looks in all sources until a block has the transaction. The state that a client receives is cached, so that no later
    /// answer is earlier: between mempool and index a node does not know a transaction for a moment.
    async fn find(&self, hash: &TxHash) -> Result<Found, Problem> {
        let mut state = self.relay.send(GetState(*hash)).await.map_err(stopping)?;
        if is_included(&state) {
            return Ok(Found { state, has_no_index: false });
        }
        let (indexed, recalled) = tokio::join!(self.nodes.find(hash), self.peers.recall(hash));
        state.merge(recalled.state);
        if state.is_open_refusal() {
            state.answer = None;
        }
        let was_known = state.answer.is_some();
        let mut indexed = indexed;
        let mut waiting = Ok(false);
        if !state.is_accepted() && !matches!(indexed, Ok(Some(_))) {
            waiting = self.nodes.is_waiting(hash).await;
        }
        if matches!(waiting, Ok(true)) {
            let tx_hash = hash.to_string();
            let reply = SubmitTransactionReply { success: true, tx_hash, ..Default::default() };
            state.merge(SubmissionState { asked_again: state.asked_again, ..known(Finality::Sync, reply) });
        } else if state.answer.is_none() && matches!(indexed, Ok(None)) {
            // It may have moved from the mempool into a block meanwhile.
            indexed = self.nodes.find(hash).await;
        }
        let has_no_index = match indexed {
            Ok(Some(included)) => {
                state.merge(known(Finality::Commit, included.reply(hash)));
                false
            }
            Ok(None) => false,
            Err(CallError::Refused(Refusal::NoIndex)) => true,
            Err(failed) if state.answer.is_none() => return Err(failed.problem()),
            // The replica that does not answer may have reported a block.
            Err(failed) if recalled.is_partial && !is_included(&state) => {
                return Err(failed.problem());
            }
            Err(_) => false,
        };
        match waiting {
            // A node, or a proxy in front of it, may keep its mempool to itself.
            Ok(_) | Err(CallError::Refused(_)) => {}
            Err(failed) if state.answer.is_none() => return Err(failed.problem()),
            Err(_) => {}
        }
        if state.answer.is_none() && recalled.is_partial {
            let what = "a replica of the relay does not answer: it may know the transaction";
            return Err(Problem::new(Code::Unavailable, NODE, what));
        }
        self.share(hash, &state, was_known).await?;
        Ok(Found { state, has_no_index })
    }

    /// Shares what a client is about to receive with the other replicas, and caches it.
    async fn share(&self, hash: &TxHash, state: &SubmissionState, was_known: bool) -> Result<(), Problem> {
        if is_included(state) {
            // Replicas may know the transaction without its block, also a frozen one that this replica does not know. If
            // this replica and the node end now, they would report an earlier state.
            let learned = Learned { hash: *hash, state: state.clone(), is_reported: false };
            let learn = Learn { states: vec![learned], is_for_known: !was_known };
            self.relay.send(learn).await.map_err(stopping)?;
            self.peers.share(hash, state, !was_known).await;
        } else if !was_known && state.answer.is_some() {
            self.peers.share_reported(hash, state).await;
        }
        if state.answer.is_some() {
            self.relay.send(Reported(*hash, state.clone())).await.map_err(stopping)?;
        }
        Ok(())
    }
}

fn stopping(_: actix::MailboxError) -> Problem {
    Problem::unavailable("the relay is stopping")
}

fn known(finality: Finality, reply: SubmitTransactionReply) -> SubmissionState {
    SubmissionState { answer: Some((finality, reply)), ..SubmissionState::default() }
}

fn is_included(state: &SubmissionState) -> bool {
    state.answer.as_ref().is_some_and(|(finality, _)| *finality == Finality::Commit)
}

/// The reply from a state. The log of a refusal without one is its data, which contains the reason.
fn reply(state: SubmissionState) -> (Status, SubmitTransactionReply) {
    match state.answer {
        None => (Status::Unknown, SubmitTransactionReply::default()),
        Some((Finality::Commit, reply)) => (Status::Included, reply),
        Some((_, reply)) if reply.success => (Status::Pending, reply),
        Some((_, mut reply)) => {
            if reply.log.is_empty() {
                reply.log = std::mem::take(&mut reply.data);
            }
            (Status::Refused, reply)
        }
    }
}
