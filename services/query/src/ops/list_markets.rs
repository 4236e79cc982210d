//! ListMarkets: the latest definition of each market with its newest prices.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, Value};
use proto_msgs::{
    numbers::list_markets::MARKETS as FAILED,
    v2::{
        ListMarketsReply, ListMarketsRequest, Market, MarketEdge, MarketPage, MarketState, MarketTradingMode,
        PageInfo, Pagination,
    },
};

use crate::paging::PagedList;

/// Markets by id. A network has few of them, so filters are applied along the walk.
pub static MARKETS: List = List {
    name: "market",
    table: "markets_with_prices",
    key: &[KeyKind::Text.column("id")],
    columns: &[
        "code",
        "name",
        "quote_name",
        "settlement_asset",
        "decimal_places",
        "position_decimal_places",
        "trading_mode::text AS trading_mode",
        "state::text AS state",
        "opened_at_ns",
        "coalesce(mark_price::text, '') AS mark_price",
        "coalesce(best_bid_price::text, '') AS best_bid_price",
        "coalesce(best_offer_price::text, '') AS best_offer_price",
        "coalesce(open_interest::text, '') AS open_interest",
    ],
    is_grouped: false,
    filters: &[Filter::Matches("state = $::text::market_state_type"), Filter::Equal("settlement_asset")],
    own_indexes: &[],
};

impl PagedList for ListMarketsRequest {
    type Node = Market;

    const FAILED: u32 = FAILED;
    const LIST: &'static List = &MARKETS;

    fn pagination(&self) -> Option<&Pagination> {
        self.pagination.as_ref()
    }

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let state = match self.state() {
            MarketState::StateUnspecified => None,
            state => Some(Value::Text(state.as_str_name().to_owned())),
        };
        Ok(vec![state, self.settlement_asset.map(Value::Text)])
    }

    fn node(row: &Row) -> Result<Market, ReadError> {
        let (trading_mode, state): (Option<&str>, Option<&str>) =
            (row.try_get("trading_mode")?, row.try_get("state")?);
        Ok(Market {
            id: row.try_get("id")?,
            code: row.try_get("code")?,
            name: row.try_get("name")?,
            quote_name: row.try_get("quote_name")?,
            settlement_asset: row.try_get("settlement_asset")?,
            decimal_places: row.try_get("decimal_places")?,
            position_decimal_places: row.try_get("position_decimal_places")?,
            trading_mode: trading_mode.and_then(MarketTradingMode::from_str_name).unwrap_or_default().into(),
            state: state.and_then(MarketState::from_str_name).unwrap_or_default().into(),
            opened_at: row.try_get("opened_at_ns")?,
            mark_price: row.try_get("mark_price")?,
            best_bid_price: row.try_get("best_bid_price")?,
            best_offer_price: row.try_get("best_offer_price")?,
            open_interest: row.try_get("open_interest")?,
        })
    }

    fn reply(nodes: Vec<(Market, String)>, page_info: Option<PageInfo>) -> ListMarketsReply {
        let edges = nodes.into_iter().map(|(node, cursor)| MarketEdge { node: Some(node), cursor });
        ListMarketsReply { markets: Some(MarketPage { edges: edges.collect(), page_info }) }
    }
}
