//! GetNetworkLimits: the newest limits of the network.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, Row, TimeUs, block_of};
use proto_msgs::{
    numbers::get_network_limits::LIMITS,
    v2::{GetNetworkLimitsReply, GetNetworkLimitsRequest, NetworkLimits},
};

use crate::NodeInfo;

impl Handler<Ask<GetNetworkLimitsRequest>> for NodeInfo {
    type Result = AnswerFuture<GetNetworkLimitsReply>;

    fn handle(&mut self, ask: Ask<GetNetworkLimitsRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(LIMITS);
            let past = store.past(request.at_block, request.chain_id.as_deref(), LIMITS).await?;
            let time = past.map(|past| past.time);
            let sql = include_str!("../../sql/get_network_limits.sql");
            let row = store.point(sql, &[&time], past.as_ref()).await.map_err(failed)?;
            let limits = limits(&row).map_err(failed)?;
            let limits =
                limits.ok_or_else(|| Problem::not_found(LIMITS, "no network limits are recorded"))?;
            let block = block_of(&row, past.as_ref()).map_err(failed)?;
            let reply = GetNetworkLimitsReply { limits: Some(limits) };
            Ok(Answer::at(block, reply).finally(past.is_some_and(|past| past.is_sealed)))
        })
    }
}

fn limits(row: &Row) -> Result<Option<NetworkLimits>, ReadError> {
    let Some(can_propose_market) = row.try_get("can_propose_market")? else { return Ok(None) };
    Ok(Some(NetworkLimits {
        can_propose_market,
        can_propose_asset: row.try_get("can_propose_asset")?,
        propose_market_enabled: row.try_get("propose_market_enabled")?,
        propose_asset_enabled: row.try_get("propose_asset_enabled")?,
        genesis_loaded: row.try_get("genesis_loaded")?,
        propose_market_enabled_from: row.try_get::<_, TimeUs>("propose_market_enabled_from")?.ns(),
        propose_asset_enabled_from: row.try_get::<_, TimeUs>("propose_asset_enabled_from")?.ns(),
    }))
}
