//! One file per operation, and the one row that each needs.

mod data_source;
mod get_market_depth;
mod get_oracle_spec;
mod get_order;
mod get_portfolio;
mod get_withdrawal;
mod list_accounts;
mod list_assets;
mod list_candle_data;
mod list_candle_intervals;
mod list_delegations;
mod list_deposits;
mod list_epoch_reward_summaries;
mod list_markets;
mod list_orders;
mod list_positions;
mod list_protocol_upgrade_proposals;
mod list_trades;
mod list_withdrawals;

use actix::Addr;
pub use get_market_depth::{BOOK, PAST_BOOK};
pub use list_accounts::ACCOUNTS;
pub use list_assets::ASSETS;
pub use list_candle_data::CANDLES;
pub use list_delegations::DELEGATIONS;
pub use list_deposits::DEPOSITS;
pub use list_epoch_reward_summaries::SUMMARIES;
pub use list_markets::MARKETS;
pub use list_orders::ORDERS;
pub use list_positions::POSITIONS;
pub use list_protocol_upgrade_proposals::PROPOSALS;
pub use list_trades::TRADES;
pub use list_withdrawals::WITHDRAWALS;
use mesh_bus::{Bus, Limits, Places, Router};
use mesh_chassis::Registry;
use mesh_store::List;
use proto_msgs::v2::{
    GetMarketDepthRequest, GetOracleSpecRequest, GetOrderRequest, GetPortfolioRequest, GetWithdrawalRequest,
    ListAccountsRequest, ListAssetsRequest, ListCandleDataRequest, ListCandleIntervalsRequest,
    ListDelegationsRequest, ListDepositsRequest, ListEpochRewardSummariesRequest, ListMarketsRequest,
    ListOrdersRequest, ListPositionsRequest, ListProtocolUpgradeProposalsRequest, ListTradesRequest,
    ListWithdrawalsRequest,
};

use crate::Query;

/// The lists of all operations that answer in pages.
pub static LISTS: [&List; 12] = [
    &ACCOUNTS, &ASSETS, &CANDLES, &DELEGATIONS, &DEPOSITS, &MARKETS, &ORDERS, &POSITIONS, &PROPOSALS,
    &SUMMARIES, &TRADES, &WITHDRAWALS,
];

/// Every operation of the workload. Each one that reads many rows has these places.
pub(crate) fn router(
    bus: Bus,
    query: Addr<Query>,
    limits: Limits,
    lists: Places,
    registry: &mut Registry,
) -> Router<Query> {
    Router::new(bus, "query", query, limits, registry)
        .on::<GetOracleSpecRequest>()
        .on::<GetOrderRequest>()
        .on::<GetWithdrawalRequest>()
        .on_places::<GetMarketDepthRequest>(lists)
        .on_places::<GetPortfolioRequest>(lists)
        .on_places::<ListAccountsRequest>(lists)
        .on_places::<ListAssetsRequest>(lists)
        .on_places::<ListCandleDataRequest>(lists)
        .on::<ListCandleIntervalsRequest>()
        .on_places::<ListDelegationsRequest>(lists)
        .on_places::<ListDepositsRequest>(lists)
        .on_places::<ListEpochRewardSummariesRequest>(lists)
        .on_places::<ListMarketsRequest>(lists)
        .on_places::<ListOrdersRequest>(lists)
        .on_places::<ListPositionsRequest>(lists)
        .on_places::<ListProtocolUpgradeProposalsRequest>(lists)
        .on_places::<ListTradesRequest>(lists)
        .on_places::<ListWithdrawalsRequest>(lists)
}
