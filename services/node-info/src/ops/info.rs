//! Info: version and commit of this gateway, answered without database and node.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use proto_msgs::v2::{InfoReply, InfoRequest};

use crate::NodeInfo;

impl Handler<Ask<InfoRequest>> for NodeInfo {
    type Result = AnswerFuture<InfoReply>;

    fn handle(&mut self, Ask(_, scope): Ask<InfoRequest>, _: &mut Context<Self>) -> Self::Result {
        let version = concat!("v", env!("CARGO_PKG_VERSION")).to_owned();
        let commit_hash = env!("MESH_COMMIT").to_owned();
        scope.run(async move { Ok(InfoReply { version, commit_hash }.into()) })
    }
}
