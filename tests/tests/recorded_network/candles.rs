//! ListCandleData: the candles of every interval and market, as recorded and as computed from the trades.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    paging::{
        list::{List, Row, number},
        page::View,
    },
    recorded_network::{
        check::{Check, UNKNOWN, with_check},
        files,
        recording::{Recording, with_recording},
    },
};

/// Name and length in minutes; block candles have no length.
const INTERVALS: [(&str, Option<i64>); 7] = [
    ("block", None),
    ("1_minute", Some(1)),
    ("5_minutes", Some(5)),
    ("15_minutes", Some(15)),
    ("1_hour", Some(60)),
    ("6_hours", Some(6 * 60)),
    ("1_day", Some(24 * 60)),
];

/// Candles by candle id and start.
type Candles = BTreeMap<String, BTreeMap<i64, Candle>>;

#[derive(Debug, PartialEq)]
struct Candle {
    last_update: i64,
    open: i128,
    close: i128,
    high: i128,
    low: i128,
    volume: u64,
}

fn candle_id(interval: &str, market: &str) -> String {
    format!("trades_candle_{interval}_{market}")
}

/// From `candles.csv`, which is not loaded.
fn recorded(recording: &Recording) -> Candles {
    let mut candles = Candles::new();
    for row in recording.table("candles").rows() {
        let candle = Candle {
            last_update: row.ns("last_update_in_period"),
            open: row.number("open"),
            close: row.number("close"),
            high: row.number("high"),
            low: row.number("low"),
            volume: row.number("volume"),
        };
        let of_id = candles.entry(row.text("candle_id").to_owned()).or_default();
        assert!(of_id.insert(row.ns("period_start"), candle).is_none(), "a candle is recorded twice");
    }
    candles
}

/// Computed from the trades in order of time.
fn recomputed(recording: &Recording) -> Candles {
    let table = recording.table("trades");
    let mut trades: Vec<files::Row<'_>> = table.rows().collect();
    trades.sort_by_key(|trade| trade.ns("synthetic_time"));
    let mut candles = Candles::new();
    for trade in trades {
        let (at, price) = (trade.ns("synthetic_time"), trade.number("price"));
        for (interval, minutes) in INTERVALS {
            let start = match minutes.map(|minutes| minutes * 60_000_000_000) {
                Some(length) => at - at % length,
                None => trade.ns("block_time"),
            };
            let id = candle_id(interval, trade.text("market_id"));
            let of_id = candles.entry(id).or_default();
            let fresh =
                Candle { last_update: at, open: price, close: price, high: price, low: price, volume: 0 };
            let candle = of_id.entry(start).or_insert(fresh);
            candle.last_update = at;
            candle.close = price;
            candle.high = candle.high.max(price);
            candle.low = candle.low.min(price);
            candle.volume += trade.number::<u64>("size");
        }
    }
    candles
}

fn listing(candles: Option<&BTreeMap<i64, Candle>>) -> View {
    let row = |(start, candle): (&i64, &Candle)| {
        let node = json!({
            "start": start.to_string(),
            "lastUpdate": candle.last_update.to_string(),
            "high": candle.high.to_string(),
            "low": candle.low.to_string(),
            "open": candle.open.to_string(),
            "close": candle.close.to_string(),
            "volume": candle.volume.to_string(),
        });
        Row { key: vec![number(*start)], node }
    };
    let rows = candles.into_iter().flatten().map(row).collect();
    View { list: List::Candles, path: String::new(), rows }
}

fn path_of(candle_id: &str) -> String {
    format!("/api/v2/candle?candleId={candle_id}")
}

fn start_of(node: &Value) -> i64 {
    node["start"].as_str().unwrap().parse().unwrap()
}

#[test]
fn candles_are_those_of_the_recording_and_those_that_follow_from_the_trades() {
    with_recording(async |recording| {
        let (recorded, recomputed) = (recorded(recording), recomputed(recording));
        assert_eq!(recorded.values().map(BTreeMap::len).sum::<usize>(), 78);
        assert_eq!(recorded.len(), 7 * 10, "seven intervals of each market with trades");
        assert_eq!(recorded.keys().collect::<Vec<_>>(), recomputed.keys().collect::<Vec<_>>());
        for (title, candles) in [
            ("ListCandleData, as recorded", &recorded),
            ("ListCandleData, recomputed from trades", &recomputed),
        ] {
            let mut check = Check::new(recording, title);
            for (id, of_id) in candles {
                listing(Some(of_id)).compare(&mut check, &path_of(id)).await;
            }
            check.done();
        }
    });
}

#[test]
fn pages_of_candles_hold_every_candle_once() {
    with_check("ListCandleData, page by page", async |recording, check| {
        for (id, of_id) in &recomputed(recording) {
            for size in [1, 2, 3, 1000] {
                listing(Some(of_id)).walk(check, &path_of(id), size).await;
            }
        }
    });
}

#[test]
fn bounds_of_time_take_the_start_in_and_leave_the_end_out() {
    with_check("ListCandleData, between two times", async |recording, check| {
        for (id, of_id) in &recomputed(recording) {
            let all = listing(Some(of_id));
            // Bounds around every start, and 0, which is no bound.
            let around = of_id.keys().flat_map(|start| [start - 1, *start, start + 1]);
            let times: BTreeSet<i64> = around.chain([0]).collect();
            for from in &times {
                for to in times.iter().filter(|to| **to == 0 || *to >= from) {
                    let between = |start: i64| start >= *from && (*to == 0 || start < *to);
                    let found = all.filtered(|node| between(start_of(node)));
                    let path = format!("{}&fromTimestamp={from}&toTimestamp={to}", path_of(id));
                    found.compare(check, &path).await;
                }
                let found = all.filtered(|node| start_of(node) >= *from);
                found.walk(check, &format!("{}&fromTimestamp={from}", path_of(id)), 2).await;
            }
            let (first, last) = (times.iter().nth(1).unwrap(), times.iter().next_back().unwrap());
            let inverted = format!("{}&fromTimestamp={last}&toTimestamp={first}", path_of(id));
            check.refused(&inverted, 400, 3, 10042).await;
        }
    });
}

#[test]
fn markets_without_trades_have_no_candles_and_letter_case_does_not_matter() {
    with_check("ListCandleData, all markets and an unknown one", async |recording, check| {
        let (markets, candles) = (recording.table("markets"), recomputed(recording));
        let markets: BTreeSet<&str> = markets.rows().map(|row| row.text("id")).chain([UNKNOWN]).collect();
        for market in markets {
            for (interval, _) in INTERVALS {
                let expected = listing(candles.get(&candle_id(interval, market)));
                for id in [market.to_owned(), market.to_uppercase()] {
                    expected.compare(check, &path_of(&candle_id(interval, &id))).await;
                }
            }
        }
    });
}
