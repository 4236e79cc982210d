//! SubmitRawTransaction: an encoded transaction, taken to the node as it is.

use actix::{AsyncContext, Context, Handler};
use mesh_bus::{Answering, Ask};
use proto_msgs::v2::{SubmitRawTransactionRequest, SubmitTransactionReply};

use crate::{Relay, request};

impl Handler<Ask<SubmitRawTransactionRequest>> for Relay {
    type Result = Answering<SubmitTransactionReply>;

    fn handle(
        &mut self,
        Ask(asked): Ask<SubmitRawTransactionRequest>,
        context: &mut Context<Self>,
    ) -> Self::Result {
        self.submit(asked.r#type, request::raw(asked.tx), context.address())
    }
}
