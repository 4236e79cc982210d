//! GetMarketDepth: the order book of a market.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{ReadError, RowReader, head_of};
use proto_msgs::{
    numbers::get_market_depth::DEPTH,
    v2::{GetMarketDepthReply, GetMarketDepthRequest, MarketDepth, PriceLevel, Side},
};

use crate::Query;

/// Most levels of a side.
const MAX_LEVELS: u32 = 1000;

impl Handler<Ask<GetMarketDepthRequest>> for Query {
    type Result = AnswerFuture<GetMarketDepthReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetMarketDepthRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(DEPTH);
            let levels = match request.max_depth() {
                0 => MAX_LEVELS,
                levels => levels.min(MAX_LEVELS),
            };
            let sql = include_str!("../../sql/get_market_depth.sql");
            let rows =
                store.list("depth", sql, &[&request.market_id, &i64::from(levels)]).await.map_err(failed)?;
            let mut depth = MarketDepth { market_id: request.market_id, ..MarketDepth::default() };
            for row in &rows {
                let row = RowReader::new(row, "orders_current", "price", store.unreadable());
                match row.numbered::<Side>("side").map_err(failed)? {
                    Side::Buy => depth.buy.push(level(&row).map_err(failed)?),
                    Side::Sell => depth.sell.push(level(&row).map_err(failed)?),
                    // The row of the head.
                    Side::Unspecified => {}
                }
            }
            let head = rows.first().map_or(Ok(None), head_of).map_err(failed)?;
            Ok(Answer::at(head, GetMarketDepthReply { depth: Some(depth) }))
        })
    }
}

fn level(row: &RowReader<'_>) -> Result<PriceLevel, ReadError> {
    let orders: i64 = row.get("orders")?;
    Ok(PriceLevel {
        price: row.whole("price")?.unwrap_or_default(),
        volume: row.unsigned_text("volume")?,
        orders: u32::try_from(orders).unwrap_or(u32::MAX),
    })
}
