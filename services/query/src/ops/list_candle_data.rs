//! ListCandleData: candles of one market and interval.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ListKey, ReadError, Row, TimeUs};
use proto_msgs::{
    numbers::list_candle_data::{CANDLE_ID_INVALID, CANDLES, TIMES},
    v2::{Candle, CandleEdge, CandlePage, ListCandleDataReply, ListCandleDataRequest},
};

use crate::{
    Query,
    paging::{frame, page_info, window},
};

/// Sort key of candles: the start of the period, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start(i64);

impl ListKey for Start {
    const LIST: &'static str = "candle";

    fn values(&self) -> Vec<String> {
        vec![self.0.to_string()]
    }

    fn from_values(values: &[String]) -> Option<Self> {
        match values {
            [start] => Some(Self(start.parse().ok()?)),
            _ => None,
        }
    }
}

impl Handler<Ask<ListCandleDataRequest>> for Query {
    type Result = AnswerFuture<ListCandleDataReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<ListCandleDataRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (store, sizes) = (self.store.clone(), self.sizes);
        scope.run(async move {
            let failed = |error: ReadError| error.problem(CANDLES);
            let (interval, market) = parts(&request.candle_id)
                .ok_or_else(|| Problem::invalid(CANDLE_ID_INVALID, "the candle id is malformed"))?;
            let window = window::<Start>(request.pagination.as_ref(), sizes)?;
            let (from, to) = times(request.from_timestamp, request.to_timestamp)?;
            // A position between two stored times: its stored neighbour on the side that the walk leaves.
            let position = window.position().map(|Start(ns)| match window.descending() {
                true => TimeUs::at_or_after_ns(*ns),
                false => TimeUs::at_or_before_ns(*ns),
            });
            let rows = store
                .list(
                    include_str!("../../sql/list_candle_data.sql"),
                    &[&interval, &market, &from, &to, &window.descending(), &window.rows(), &position],
                )
                .await
                .map_err(failed)?;
            let (head, behind) = frame(&rows).map_err(failed)?;
            let candles: Result<_, _> = rows.iter().filter_map(|row| candle(row).transpose()).collect();
            let page = window.page(candles.map_err(failed)?, behind);
            let page_info = Some(page_info(&page));
            let edges = page
                .edges
                .into_iter()
                .map(|(cursor, node)| CandleEdge { node: Some(node), cursor })
                .collect();
            Ok(Answer::at(head, ListCandleDataReply { candles: Some(CandlePage { edges, page_info }) }))
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

fn candle(row: &Row) -> Result<Option<(Start, Candle)>, ReadError> {
    let Some(start) = row.try_get::<_, Option<TimeUs>>("period_start")? else { return Ok(None) };
    let volume: &str = row.try_get("volume")?;
    let candle = Candle {
        start: start.ns(),
        last_update: row.try_get::<_, TimeUs>("last_update_in_period")?.ns(),
        high: row.try_get("high")?,
        low: row.try_get("low")?,
        open: row.try_get("open")?,
        close: row.try_get("close")?,
        volume: volume.parse().map_err(|_| ReadError::Unreadable(format!("volume {volume}")))?,
    };
    Ok(Some((Start(candle.start), candle)))
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
