//! SubmitRawTransaction: an encoded transaction, taken to the node as it is.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use proto_msgs::v2::{SubmitRawTransactionRequest, SubmitTransactionReply};

use crate::{Relay, request};

impl Handler<Ask<SubmitRawTransactionRequest>> for Relay {
    type Result = AnswerFuture<SubmitTransactionReply>;

    fn handle(&mut self, ask: Ask<SubmitRawTransactionRequest>, context: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        self.submit(request.r#type, request::check_raw(request.tx), context.address(), scope)
    }
}
