//! ListTrades: trades by market and by party on either side.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeRange, TimeUs, Value};
use proto_msgs::{
    numbers::list_trades::{DATE_RANGE, TRADES as FAILED},
    v2::{
        DateRange, ListTradesReply, ListTradesRequest, PageInfo, Pagination, Side, Trade, TradeEdge,
        TradePage, trade::Type,
    },
};

use crate::paging::PagedList;

/// Trades by their synthetic time. There is an index for each filter, and for both together.
pub static TRADES: List = List {
    name: "trade",
    table: "trades",
    key: &[KeyKind::Time.column("synthetic_time")],
    columns: &[
        "id",
        "market_id",
        "price::text AS price",
        "size",
        "buyer",
        "seller",
        "aggressor",
        "buy_order",
        "sell_order",
        "type",
    ],
    is_grouped: false,
    filters: &[
        Filter::Equal("market_id"),
        Filter::EitherOf(["buyer", "seller"]),
        Filter::AtLeast,
        Filter::AtMost,
    ],
    own_indexes: &[&["market_id"], &["buyer"], &["market_id", "buyer"]],
};

impl PagedList for ListTradesRequest {
    type Node = Trade;

    const FAILED: u32 = FAILED;
    const LIST: &'static List = &TRADES;

    fn pagination(&self) -> Option<&Pagination> {
        self.pagination.as_ref()
    }

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

    fn node(row: &Row) -> Result<Trade, ReadError> {
        let size: i64 = row.try_get("size")?;
        let (aggressor, kind): (Option<i16>, i16) = (row.try_get("aggressor")?, row.try_get("type")?);
        let aggressor = Side::try_from(i32::from(aggressor.unwrap_or_default())).unwrap_or_default();
        Ok(Trade {
            id: row.try_get("id")?,
            market_id: row.try_get("market_id")?,
            price: row.try_get("price")?,
            size: u64::try_from(size).map_err(|_| ReadError::Unreadable(format!("size {size}")))?,
            buyer: row.try_get("buyer")?,
            seller: row.try_get("seller")?,
            aggressor: aggressor.into(),
            buy_order: row.try_get("buy_order")?,
            sell_order: row.try_get("sell_order")?,
            r#type: Type::try_from(i32::from(kind)).unwrap_or_default().into(),
            timestamp: row.try_get::<_, TimeUs>("synthetic_time")?.ns(),
        })
    }

    fn reply(nodes: Vec<(Trade, String)>, page_info: Option<PageInfo>) -> ListTradesReply {
        let edges = nodes.into_iter().map(|(node, cursor)| TradeEdge { node: Some(node), cursor });
        ListTradesReply { trades: Some(TradePage { edges: edges.collect(), page_info }) }
    }
}
