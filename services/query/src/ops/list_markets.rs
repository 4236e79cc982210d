//! ListMarkets: the latest definition of each market with its newest prices.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, Value};
use proto_msgs::{
    numbers::list_markets::MARKETS as FAILED,
    v2::{ListMarketsRequest, Market, MarketState, MarketTradingMode},
};

use crate::paging::{PagedList, chosen};

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
        "mark_price::text AS mark_price",
        "best_bid_price::text AS best_bid_price",
        "best_offer_price::text AS best_offer_price",
        "open_interest::text AS open_interest",
    ],
    filters: &[Filter::Matches("state = $::text::market_state_type"), Filter::Equal("settlement_asset")],
    past: &[PastSource::new(include_str!("../../sql/past/list_markets.sql"))],
    ..List::PLAIN
};

impl PagedList for ListMarketsRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &MARKETS;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let state = chosen(self.state(), MarketState::as_str_name);
        Ok(vec![state, self.settlement_asset.map(Value::Text)])
    }

    fn node(row: &RowReader<'_>) -> Result<Market, ReadError> {
        Ok(Market {
            id: row.get("id")?,
            code: row.get("code")?,
            name: row.get("name")?,
            quote_name: row.get("quote_name")?,
            settlement_asset: row.get("settlement_asset")?,
            decimal_places: row.get("decimal_places")?,
            position_decimal_places: row.get("position_decimal_places")?,
            trading_mode: row.named("trading_mode", MarketTradingMode::from_str_name)?.into(),
            state: row.named("state", MarketState::from_str_name)?.into(),
            opened_at: row.get("opened_at_ns")?,
            mark_price: row.whole("mark_price")?.unwrap_or_default(),
            best_bid_price: row.whole("best_bid_price")?.unwrap_or_default(),
            best_offer_price: row.whole("best_offer_price")?.unwrap_or_default(),
            open_interest: row.whole("open_interest")?.unwrap_or_default(),
        })
    }
}
