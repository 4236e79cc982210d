//! GetProtocolUpgradeStatus: whether the newest block is that of an approved upgrade and the segment that
//! ends with it is published. The flag is in the store, so it survives restarts and is the same on all
//! replicas.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_store::ReadError;
use proto_msgs::v2::{GetProtocolUpgradeStatusReply, GetProtocolUpgradeStatusRequest};

use crate::NodeInfo;

impl Handler<Ask<GetProtocolUpgradeStatusRequest>> for NodeInfo {
    type Result = AnswerFuture<GetProtocolUpgradeStatusReply>;

    fn handle(&mut self, ask: Ask<GetProtocolUpgradeStatusRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(_, scope) = ask;
        let store = self.store.clone();
        scope.run(async move {
            let row =
                store.point(include_str!("../../sql/get_protocol_upgrade_status.sql"), &[], None).await?;
            let ready = row.try_get("ready").map_err(ReadError::from)?;
            Ok(GetProtocolUpgradeStatusReply { ready }.into())
        })
    }
}
