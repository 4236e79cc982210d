//! GetTransaction: the state of a transaction by its hash, from the node's blocks or else this replica's
//! result cache.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_problem::{MALFORMED, Problem};
use mesh_transaction::TxHash;
use proto_msgs::v2::{
    GetTransactionReply, GetTransactionRequest, SubmitTransactionReply, get_transaction_reply::Status,
};

use crate::{
    Relay,
    node::{CallError, IncludedTx},
    relay::GetState,
    result_cache::SubmissionState,
    submission,
};

impl Handler<Ask<GetTransactionRequest>> for Relay {
    type Result = AnswerFuture<GetTransactionReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetTransactionRequest>,
        context: &mut Context<Self>,
    ) -> Self::Result {
        let (nodes, relay) = (self.nodes.clone(), context.address());
        scope.run(async move {
            let hash = request
                .hash
                .parse::<TxHash>()
                .map_err(|_| Problem::invalid(MALFORMED, "hash must be 64 hex digits"))?;
            let found = nodes.find(&hash).await;
            let cached = relay.send(GetState(hash)).await;
            let cached = cached.map_err(|_| Problem::unavailable("the relay is stopping"))?;
            let (status, reply) = match (found, cached) {
                (Ok(Some(included)), _) => (Status::Included, from_block(included)),
                // The node answers, but keeps no transaction index.
                (Ok(None) | Err(CallError::Refused(_)), cached) => from_cache(cached.unwrap_or_default()),
                (Err(_), Some(cached)) => from_cache(cached),
                (Err(failed), None) => return Err(submission::problem(failed)),
            };
            let SubmitTransactionReply { height, code, log, .. } = reply;
            let reply =
                GetTransactionReply { tx_hash: hash.to_string(), status: status.into(), height, code, log };
            Ok(reply.into())
        })
    }
}

fn from_block(included: IncludedTx) -> SubmitTransactionReply {
    let IncludedTx { height, result } = included;
    SubmitTransactionReply { height, code: result.code, log: result.log, ..SubmitTransactionReply::default() }
}

/// The reply from a cached state. The log of a refusal without one is its data, which contains the reason.
fn from_cache(state: SubmissionState) -> (Status, SubmitTransactionReply) {
    match state.answer {
        None => (Status::Unknown, SubmitTransactionReply::default()),
        Some((_, reply)) if reply.height > 0 => (Status::Included, reply),
        Some((_, reply)) if reply.success => (Status::Pending, reply),
        Some((_, mut reply)) => {
            if reply.log.is_empty() {
                reply.log = std::mem::take(&mut reply.data);
            }
            (Status::Refused, reply)
        }
    }
}
