//! GetMarketDepth: the order book of a market.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_store::{Past, ReadError, RowReader, block_of};
use proto_msgs::{
    numbers::get_market_depth::DEPTH,
    v2::{GetMarketDepthReply, GetMarketDepthRequest, MarketDepth, PriceLevel, Side},
};

use crate::Query;

/// Most levels of a side.
const MAX_LEVELS: u32 = 1000;

/// The statement for the book of now: `$1` the market, `$2` most levels of a side.
pub const BOOK: &str = include_str!("../../sql/get_market_depth.sql");

/// The statement for the book as of a block: the same, and `$3` the time of the block.
pub const PAST_BOOK: &str = include_str!("../../sql/past/get_market_depth.sql");

impl Handler<Ask<GetMarketDepthRequest>> for Query {
    type Result = AnswerFuture<GetMarketDepthReply>;

    fn handle(&mut self, ask: Ask<GetMarketDepthRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(DEPTH);
            let levels = match request.max_depth() {
                0 => MAX_LEVELS,
                levels => levels.min(MAX_LEVELS),
            };
            let past = store.past(request.at_block, request.chain_id.as_deref(), DEPTH).await?;
            let levels = i64::from(levels);
            let rows = match &past {
                None => store.list("depth", BOOK, &[&request.market_id, &levels], None).await,
                Some(Past { time: at, .. }) => {
                    store.list("depth", PAST_BOOK, &[&request.market_id, &levels, at], past.as_ref()).await
                }
            };
            let rows = rows.map_err(failed)?;
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
            let block = rows.first().map_or(Ok(None), |row| block_of(row, past.as_ref())).map_err(failed)?;
            let reply = GetMarketDepthReply { depth: Some(depth) };
            Ok(Answer::at(block, reply).finally(past.is_some_and(|past| past.is_sealed)))
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
