//! One file per operation, and the one row that each needs.

mod get_oracle_spec;
mod get_withdrawal;
mod list_accounts;
mod list_candle_data;
mod list_candle_intervals;
mod list_delegations;
mod list_epoch_reward_summaries;
mod list_protocol_upgrade_proposals;

use actix::Addr;
pub use list_candle_data::CANDLES;
pub use list_delegations::DELEGATIONS;
pub use list_epoch_reward_summaries::SUMMARIES;
pub use list_protocol_upgrade_proposals::PROPOSALS;
use mesh_bus::{Bus, Limits, Router};
use mesh_chassis::Registry;
use proto_msgs::v2::{
    GetOracleSpecRequest, GetWithdrawalRequest, ListAccountsRequest, ListCandleDataRequest,
    ListCandleIntervalsRequest, ListDelegationsRequest, ListEpochRewardSummariesRequest,
    ListProtocolUpgradeProposalsRequest,
};

use crate::Query;

/// Every operation of the workload.
pub(crate) fn router(bus: Bus, query: Addr<Query>, limits: Limits, registry: &mut Registry) -> Router<Query> {
    Router::new(bus, "query", query, limits, registry)
        .on::<GetOracleSpecRequest>()
        .on::<GetWithdrawalRequest>()
        .on::<ListAccountsRequest>()
        .on::<ListCandleDataRequest>()
        .on::<ListCandleIntervalsRequest>()
        .on::<ListDelegationsRequest>()
        .on::<ListEpochRewardSummariesRequest>()
        .on::<ListProtocolUpgradeProposalsRequest>()
}
