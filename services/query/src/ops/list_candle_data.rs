//! ListCandleData: candles of one market and interval.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, ReadError, Row, TimeUs, Value};
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
            let (from, to) = times(request.from_timestamp, request.to_timestamp)?;
            let text = |text: &str| Some(Value::Text(text.to_owned()));
            // The end is exclusive; stored times are whole microseconds.
            let last = to.map(|TimeUs(to)| TimeUs(to - 1));
            let filters = vec![text(interval), text(market), from.map(Value::Time), last.map(Value::Time)];
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

/// The bounds, start inclusive, end exclusive; 0 or absent = open.
fn times(from: Option<i64>, to: Option<i64>) -> Result<(Option<TimeUs>, Option<TimeUs>), Problem> {
    let non_zero = |time: Option<i64>| time.filter(|time| *time != 0);
    let (from, to) = (non_zero(from), non_zero(to));
    for (name, time) in [("fromTimestamp", from), ("toTimestamp", to)] {
        if let Some(time) = time.filter(|time| *time < 0) {
            return Err(Problem::invalid(TIMES, "a time is negative").with_inner(format!("{name} {time}")));
        }
    }
    if let Some((from, to)) = from.zip(to).filter(|(from, to)| to < from) {
        let problem = Problem::invalid(TIMES, "the time range is inverted");
        return Err(problem.with_inner(format!("fromTimestamp {from}, toTimestamp {to}")));
    }
    Ok((from.map(TimeUs::at_or_after_ns), to.map(TimeUs::at_or_after_ns)))
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
    fn bounds_are_rounded_up_to_stored_times() {
        assert_eq!(times(Some(1_001), Some(2_000)).unwrap(), (Some(TimeUs(2)), Some(TimeUs(2))));
        assert_eq!(times(Some(0), None).unwrap(), (None, None));
        assert_eq!(times(Some(5), Some(5)).map(|_| ()), Ok(()));
        for (from, to) in [(Some(-1), None), (None, Some(-1)), (Some(2), Some(1))] {
            assert_eq!(times(from, to).unwrap_err().number(), TIMES);
        }
    }

    #[test]
    fn an_interval_may_hold_underscores() {
        assert_eq!(parts("trades_candle_15_minutes_ab"), Some(("15_minutes", "ab")));
        assert_eq!(parts("trades_candle_block_ab"), Some(("block", "ab")));
    }
}
