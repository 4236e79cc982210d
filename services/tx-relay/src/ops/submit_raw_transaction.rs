//! SubmitRawTransaction: an encoded transaction, taken to the node as it is.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{Answering, Ask};
use proto_msgs::v2::{SubmitRawTransactionRequest, SubmitTransactionReply};

use crate::{Relay, request};

impl Handler<Ask<SubmitRawTransactionRequest>> for Relay {
    type Result = Answering<SubmitTransactionReply>;

    fn handle(
        &mut self,
        Ask(wanted, asked): Ask<SubmitRawTransactionRequest>,
        context: &mut Context<Self>,
    ) -> Self::Result {
        self.submit(wanted.r#type, request::raw(wanted.tx), context.address(), asked)
    }
}
