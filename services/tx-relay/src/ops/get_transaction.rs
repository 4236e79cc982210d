//! GetTransaction: the fate of a transaction by its hash: what this replica remembers, and what the node's blocks
//! hold. A block has the last word.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_problem::{MALFORMED, Problem};
use mesh_transaction::TxHash;
use proto_msgs::v2::{
    GetTransactionReply, GetTransactionRequest, SubmitTransactionReply, get_transaction_reply::Status,
};

use crate::{
    Relay,
    fates::Fate,
    node::{Failed, Included},
    relay::Recall,
    submission,
};

impl Handler<Ask<GetTransactionRequest>> for Relay {
    type Result = AnswerFuture<GetTransactionReply>;

    fn handle(
        &mut self,
        Ask(wanted, scope): Ask<GetTransactionRequest>,
        context: &mut Context<Self>,
    ) -> Self::Result {
        let (nodes, relay) = (self.nodes.clone(), context.address());
        scope.run(async move {
            let hash = wanted
                .hash
                .parse::<TxHash>()
                .map_err(|_| Problem::invalid(MALFORMED, "hash must be 64 hex digits"))?;
            let found = nodes.find(&hash).await;
            let remembered = relay.send(Recall(hash)).await;
            let remembered = remembered.map_err(|_| Problem::unavailable("the relay is stopping"))?;
            let (status, said) = match (found, remembered) {
                (Ok(Some(included)), _) => (Status::Included, in_block(included)),
                // A node that answers, only not this, keeps no index.
                (Ok(None) | Err(Failed::Refused(_)), remembered) => by_memory(remembered.unwrap_or_default()),
                (Err(_), Some(remembered)) => by_memory(remembered),
                (Err(failed), None) => return Err(submission::problem(failed)),
            };
            let SubmitTransactionReply { height, code, log, .. } = said;
            let reply =
                GetTransactionReply { tx_hash: hash.to_string(), status: status.into(), height, code, log };
            Ok(reply.into())
        })
    }
}

fn in_block(included: Included) -> SubmitTransactionReply {
    let Included { height, verdict } = included;
    SubmitTransactionReply {
        height,
        code: verdict.code,
        log: verdict.log,
        ..SubmitTransactionReply::default()
    }
}

/// What a submission said. A refusal's reason stands in its data when the node logs nothing.
fn by_memory(fate: Fate) -> (Status, SubmitTransactionReply) {
    match fate.answer {
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
