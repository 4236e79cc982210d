//! ListTrades: trades by market and by party on either side.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, TimeRange, Value};
use proto_msgs::{
    numbers::list_trades::{DATE_RANGE, TRADES as FAILED},
    v2::{DateRange, ListTradesRequest, Side, Trade, trade::Type},
};

use crate::paging::PagedList;

/// Trades by their synthetic time. There is an index for each filter, and for both together.
pub static TRADES: List = List {
    name: "trade",
    table: "trades",
    key: &[KeyKind::Time.column("synthetic_time")],
    columns: &[
        "id", "market_id", "price::text AS price", "size", "buyer", "seller", "aggressor::int4 AS aggressor",
        "buy_order", "sell_order", "type::int4 AS type",
    ],
    filters: &[
        Filter::Equal("market_id"),
        Filter::EitherOf(["buyer", "seller"]),
        Filter::AtLeast,
        Filter::AtMost,
    ],
    indexed: &["market_id", "buyer"],
    past: &[PastSource::new("SELECT * FROM trades WHERE trades.block_time <= {time}")],
    past_bound: Some(|past| Value::Time(past.time.second_later())),
    ..List::PLAIN
};

impl PagedList for ListTradesRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &TRADES;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let DateRange { start_timestamp, end_timestamp } = self.date_range.unwrap_or_default();
        let range = TimeRange::read(DateRange::PARAMETERS, [start_timestamp, end_timestamp], DATE_RANGE)?;
        Ok(vec![
            self.market_id.map(Value::Text),
            self.party_id.map(Value::Text),
            range.first().map(Value::Time),
            range.last().map(Value::Time),
        ])
    }

    fn node(row: &RowReader<'_>) -> Result<Trade, ReadError> {
        Ok(Trade {
            id: row.get("id")?,
            market_id: row.get("market_id")?,
            price: row.whole("price")?.unwrap_or_default(),
            size: row.unsigned("size")?,
            buyer: row.get("buyer")?,
            seller: row.get("seller")?,
            aggressor: row.numbered::<Side>("aggressor")?.into(),
            buy_order: row.get("buy_order")?,
            sell_order: row.get("sell_order")?,
            r#type: row.numbered::<Type>("type")?.into(),
            timestamp: row.ns("synthetic_time")?,
        })
    }
}
