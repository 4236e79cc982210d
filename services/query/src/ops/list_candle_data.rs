//! ListCandleData: candles of one market and interval.

use mesh_problem::Problem;
use mesh_store::{Filter, KeyKind, List, PastSource, ReadError, RowReader, TimeRange, Value};
use proto_msgs::{
    numbers::list_candle_data::{CANDLE_ID_INVALID, CANDLES as FAILED, TIMES},
    v2::{Candle, ListCandleDataRequest},
};

use crate::paging::PagedList;

/// Candles of an interval and a market, in the order of the primary key.
pub static CANDLES: List = List {
    name: "candle",
    table: "trades_candle",
    key: &[KeyKind::Time.column("period_start")],
    columns: &[
        "last_update_in_period", "high::text AS high", "low::text AS low", "open::text AS open",
        "close::text AS close", "volume::text AS volume",
    ],
    filters: &[Filter::Equal("interval"), Filter::Equal("market_id"), Filter::AtLeast, Filter::AtMost],
    past: &[PastSource::new(include_str!("../../sql/past/list_candle_data.sql"))],
    past_bound: Some(|past| Value::Time(past.time.second_later())),
    ..List::PLAIN
};

impl PagedList for ListCandleDataRequest {
    const FAILED: u32 = FAILED;
    const LIST: &'static List = &CANDLES;

    fn filters(self) -> Result<Vec<Option<Value>>, Problem> {
        let (interval, market) = parts(&self.candle_id)
            .ok_or_else(|| Problem::invalid(CANDLE_ID_INVALID, "the candle id is malformed"))?;
        let bounds = [self.from_timestamp, self.to_timestamp];
        let range = TimeRange::read(["fromTimestamp", "toTimestamp"], bounds, TIMES)?;
        let [interval, market] = [interval, market].map(|text| Some(Value::Text(text.to_owned())));
        Ok(vec![interval, market, range.first().map(Value::Time), range.last().map(Value::Time)])
    }

    fn node(row: &RowReader<'_>) -> Result<Candle, ReadError> {
        Ok(Candle {
            start: row.ns("period_start")?,
            last_update: row.ns("last_update_in_period")?,
            high: row.whole("high")?.unwrap_or_default(),
            low: row.whole("low")?.unwrap_or_default(),
            open: row.whole("open")?.unwrap_or_default(),
            close: row.whole("close")?.unwrap_or_default(),
            volume: row.unsigned_text("volume")?,
        })
    }
}

/// `trades_candle_<interval>_<market>`: interval and market.
fn parts(candle_id: &str) -> Option<(&str, &str)> {
    candle_id.strip_prefix("trades_candle_")?.rsplit_once('_')
}
