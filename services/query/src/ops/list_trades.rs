//! ListTrades: trades by market and by party on either side.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeRange, TimeUs, Value};
use proto_msgs::{
    numbers::list_trades::{DATE_RANGE, TRADES as FAILED},
    v2::{DateRange, ListTradesReply, ListTradesRequest, Side, Trade, TradeEdge, TradePage, trade::Type},
};

use crate::{Query, paging};

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

impl Handler<Ask<ListTradesRequest>> for Query {
    type Result = AnswerFuture<ListTradesReply>;

    fn handle(&mut self, Ask(request, scope): Ask<ListTradesRequest>, _: &mut Context<Self>) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let window = paging::window(&TRADES, request.pagination.as_ref(), sizes)?;
            let DateRange { start_timestamp, end_timestamp } = request.date_range.unwrap_or_default();
            let names = ["dateRange.startTimestamp", "dateRange.endTimestamp"];
            let range = TimeRange::read(names, [start_timestamp, end_timestamp], DATE_RANGE)?;
            let filters = vec![
                request.market_id.map(Value::Text),
                request.party_id.map(Value::Text),
                range.first().map(Value::Time),
                range.last().map(Value::Time),
            ];
            let page = paging::read(&store, &TRADES, &window, filters, trade).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| TradeEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let trades = Some(TradePage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListTradesReply { trades }))
        })
    }
}

fn trade(row: &Row) -> Result<Trade, ReadError> {
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
