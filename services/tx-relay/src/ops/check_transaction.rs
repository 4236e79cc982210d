//! CheckTransaction: the node's dry check of a transaction; nothing is submitted.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use proto_msgs::v2::{CheckTransactionReply, CheckTransactionRequest};

use crate::{Relay, node::CallError, request};

impl Handler<Ask<CheckTransactionRequest>> for Relay {
    type Result = AnswerFuture<CheckTransactionReply>;

    fn handle(&mut self, ask: Ask<CheckTransactionRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let nodes = self.nodes.clone();
        scope.run(async move {
            let tx = request::check_and_encode(request.tx)?;
            Ok(nodes.check(&tx).await.map_err(CallError::problem)?.into())
        })
    }
}
