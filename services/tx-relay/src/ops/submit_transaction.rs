//! SubmitTransaction: a signed transaction, checked, encoded and taken to the node.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use proto_msgs::v2::{SubmitTransactionReply, SubmitTransactionRequest};

use crate::{Relay, request};

impl Handler<Ask<SubmitTransactionRequest>> for Relay {
    type Result = AnswerFuture<SubmitTransactionReply>;

    fn handle(&mut self, ask: Ask<SubmitTransactionRequest>, context: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        self.submit(request.r#type, request::check_and_encode(request.tx), context.address(), scope)
    }
}
