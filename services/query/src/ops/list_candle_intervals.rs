//! ListCandleIntervals: the intervals of a market's candles with their ids. A closed list; the market need
//! not exist.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use proto_msgs::{
    CANDLE_INTERVALS,
    v2::{IntervalToCandleId, ListCandleIntervalsReply, ListCandleIntervalsRequest},
};

use crate::Query;

impl Handler<Ask<ListCandleIntervalsRequest>> for Query {
    type Result = AnswerFuture<ListCandleIntervalsReply>;

    fn handle(&mut self, ask: Ask<ListCandleIntervalsRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let row = |interval: &str| IntervalToCandleId {
            interval: interval.replace('_', " "),
            candle_id: format!("trades_candle_{interval}_{}", request.market_id),
        };
        let reply = ListCandleIntervalsReply { interval_to_candle_id: CANDLE_INTERVALS.map(row).to_vec() };
        scope.run(async move { Ok(reply.into()) })
    }
}
