//! One file per operation, and the one row that each needs.

mod get_network_limits;
mod get_protocol_upgrade_status;
mod info;
mod last_block_height;

use actix::Addr;
use mesh_bus::{Bus, Limits, Router};
use mesh_chassis::Registry;
use proto_msgs::v2::{
    GetNetworkLimitsRequest, GetProtocolUpgradeStatusRequest, InfoRequest, LastBlockHeightRequest,
};

pub(crate) use self::last_block_height::CachedReply;
use crate::NodeInfo;

/// Every operation of the workload.
pub(crate) fn router(
    bus: Bus,
    node_info: Addr<NodeInfo>,
    limits: Limits,
    registry: &mut Registry,
) -> Router<NodeInfo> {
    Router::new(bus, "node-info", node_info, limits, registry)
        .on::<GetNetworkLimitsRequest>()
        .on::<GetProtocolUpgradeStatusRequest>()
        .on::<InfoRequest>()
        .on::<LastBlockHeightRequest>()
}
