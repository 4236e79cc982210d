//! ListCandleData: candles of one market and interval.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeRange, TimeUs, Value};
use proto_msgs::{
    numbers::list_candle_data::{CANDLE_ID_INVALID, CANDLES as FAILED, TIMES},
    v2::{Candle, CandleEdge, CandlePage, ListCandleDataReply, ListCandleDataRequest},
};

use crate::{Query, paging};

/// Candles of an interval and a market, in the order of the primary key.
pub static CANDLES: List = List {
    name: "candle",
    table: "trades_candle",
    key: &[KeyKind::Time.column("period_start")],
    columns: &[
        "last_update_in_period",
        "high::text AS high",
        "low::text AS low",
        "open::text AS open",
        "close::text AS close",
        "volume::text AS volume",
    ],
    is_grouped: false,
    filters: &[Filter::Equal("interval"), Filter::Equal("market_id"), Filter::AtLeast, Filter::AtMost],
    own_indexes: &[],
};

impl Handler<Ask<ListCandleDataRequest>> for Query {
    type Result = AnswerFuture<ListCandleDataReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListCandleDataRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let (interval, market) = parts(&request.candle_id)
                .ok_or_else(|| Problem::invalid(CANDLE_ID_INVALID, "the candle id is malformed"))?;
            let window = paging::window(&CANDLES, request.pagination.as_ref(), sizes)?;
            let bounds = [request.from_timestamp, request.to_timestamp];
            let range = TimeRange::read(["fromTimestamp", "toTimestamp"], bounds, TIMES)?;
            let text = |text: &str| Some(Value::Text(text.to_owned()));
            let (first, last) = (range.first().map(Value::Time), range.last().map(Value::Time));
            let filters = vec![text(interval), text(market), first, last];
            let page = paging::read(&store, &CANDLES, &window, filters, candle).await;
            let page = page.map_err(|error| error.problem(FAILED))?;
            let edge = |(node, cursor)| CandleEdge { node: Some(node), cursor };
            let edges = page.edges.into_iter().map(edge).collect();
            let candles = Some(CandlePage { edges, page_info: Some(page.info) });
            Ok(Answer::at(page.head, ListCandleDataReply { candles }))
        })
    }
}

/// `trades_candle_<interval>_<market>`: interval and market.
fn parts(candle_id: &str) -> Option<(&str, &str)> {
    candle_id.strip_prefix("trades_candle_")?.rsplit_once('_')
}

fn candle(row: &Row) -> Result<Candle, ReadError> {
    let volume: &str = row.try_get("volume")?;
    Ok(Candle {
        start: row.try_get::<_, TimeUs>("period_start")?.ns(),
        last_update: row.try_get::<_, TimeUs>("last_update_in_period")?.ns(),
        high: row.try_get("high")?,
        low: row.try_get("low")?,
        open: row.try_get("open")?,
        close: row.try_get("close")?,
        volume: volume.parse().map_err(|_| ReadError::Unreadable(format!("volume {volume}")))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_may_hold_underscores() {
        assert_eq!(parts("trades_candle_15_minutes_ab"), Some(("15_minutes", "ab")));
        assert_eq!(parts("trades_candle_block_ab"), Some(("block", "ab")));
    }
}
