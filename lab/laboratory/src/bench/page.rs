//! Section "page": rendering a page of a thousand candles as the service does, compared with plain serde_json
//! of structs defined for this purpose.

use std::{hint::black_box, time::Duration};

use mesh::failure::{Failure, cannot};
use mesh_bus::{Encoding, Format};
use proto_msgs::v2::{Candle, CandleEdge, CandlePage, ListCandleDataReply, PageInfo};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde::Serialize;
use serde_json::Value;

use super::{
    cost,
    section::{Line, Section, median, quantile},
    sections::SectionName,
};

const CANDLES: i64 = 1000;
const ROUNDS: usize = 5;
/// Processor time of one round.
const LENGTH: Duration = Duration::from_millis(200);
/// Pages rendered between two readings of the clock.
const PAGES: u32 = 10;

/// Compares both by processor time, on a blocking thread.
pub(super) async fn measure() -> Result<Section, Failure> {
    let compared = tokio::task::spawn_blocking(compare).await;
    compared.map_err(|error| cannot("write a page", &error))?
}

fn compare() -> Result<Section, Failure> {
    let reply = reply();
    let plain = Plain::from_reply(&reply);
    let encoding = Encoding { format: Format::Json, gzip: false };
    let by_service = || encoding.render(&reply).map_err(|error| cannot("write a page", &error));
    let by_hand = || serde_json::to_vec(&plain).map_err(|error| cannot("write a page", &error));
    let (page, same) = (by_service()?, by_hand()?);
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    if value(&page).ok() != value(&same).ok() {
        return Err(Failure::failed(
            "both ways of writing a page must give the same; correct the plain structs",
        ));
    }
    let mut rounds: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(time(&by_service)?);
        rounds[1].push(time(&by_hand)?);
    }
    Ok(section(&rounds, page.len()))
}

/// Processor time of one page, microseconds.
fn time(write: &impl Fn() -> Result<Vec<u8>, Failure>) -> Result<f64, Failure> {
    let (begun, mut pages) = (cost::thread_cpu(), 0_u32);
    loop {
        for _ in 0..PAGES {
            black_box(write()?);
        }
        pages += PAGES;
        let spent = cost::thread_cpu().saturating_sub(begun);
        if spent >= LENGTH {
            return Ok(spent.as_secs_f64() * 1e6 / f64::from(pages));
        }
    }
}

/// A reply like those of a market with a long history.
fn reply() -> ListCandleDataReply {
    let mut random = SmallRng::seed_from_u64(7);
    let mut price = || random.random_range(1_000_000_000..9_999_999_999_u64).to_string();
    let edges: Vec<CandleEdge> = (0..CANDLES)
        .map(|n| {
            let start = 1_676_000_000_000_000_000 + n * 60_000_000_000;
            let node = Candle {
                start,
                last_update: start + 59_123_456_000,
                high: price(),
                low: price(),
                open: price(),
                close: price(),
                volume: 12_345 + n.unsigned_abs(),
            };
            CandleEdge { node: Some(node), cursor: format!("eyJvIjoiY2FuZGxlIiwiayI6WyIx{start}wMDAwMCJdfQ") }
        })
        .collect();
    let cursor = |edge: Option<&CandleEdge>| edge.map(|edge| edge.cursor.clone()).unwrap_or_default();
    let page_info = PageInfo {
        start_cursor: cursor(edges.first()),
        end_cursor: cursor(edges.last()),
        has_next_page: true,
        has_previous_page: false,
    };
    ListCandleDataReply { candles: Some(CandlePage { edges, page_info: Some(page_info) }) }
}

/// The reply as plain structs, with the contract's names and 64-bit numbers as text.
#[derive(Serialize)]
struct Plain {
    candles: PlainPage,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainPage {
    edges: Vec<PlainEdge>,
    page_info: PlainPageInfo,
}

#[derive(Serialize)]
struct PlainEdge {
    node: PlainCandle,
    cursor: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainCandle {
    #[serde(serialize_with = "as_text")]
    start: i64,
    #[serde(serialize_with = "as_text")]
    last_update: i64,
    high: String,
    low: String,
    open: String,
    close: String,
    #[serde(serialize_with = "as_text")]
    volume: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainPageInfo {
    start_cursor: String,
    end_cursor: String,
    has_next_page: bool,
    has_previous_page: bool,
}

fn as_text<N: std::fmt::Display, S: serde::Serializer>(number: &N, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl Plain {
    fn from_reply(reply: &ListCandleDataReply) -> Self {
        let page = reply.candles.clone().unwrap_or_default();
        let edge = |edge: CandleEdge| {
            let node = edge.node.unwrap_or_default();
            let Candle { start, last_update, high, low, open, close, volume } = node;
            let node = PlainCandle { start, last_update, high, low, open, close, volume };
            PlainEdge { node, cursor: edge.cursor }
        };
        let edges = page.edges.into_iter().map(edge).collect();
        let PageInfo { start_cursor, end_cursor, has_next_page, has_previous_page } =
            page.page_info.unwrap_or_default();
        let page_info = PlainPageInfo { start_cursor, end_cursor, has_next_page, has_previous_page };
        Self { candles: PlainPage { edges, page_info } }
    }
}

fn section(rounds: &[Vec<f64>; 2], bytes: usize) -> Section {
    let medians = rounds.each_ref().map(|rounds| median(rounds.iter().copied()));
    let line = |side: usize, name| {
        Line::new("writer", name)
            .value(("best CPU us", "bestUs"), 1, quantile(&rounds[side], 0.0))
            .value(("median CPU us", "medianUs"), 1, medians[side])
            .value(("MB/s", "megabytesPerSecond"), 0, bytes as f64 / medians[side])
    };
    let title = format!("page: {CANDLES} candles as JSON, {bytes} bytes, {ROUNDS} rounds in turns");
    let lines = [line(0, "reply of the contract"), line(1, "plain serde_json")];
    let found = ("reply of the contract / plain serde_json, MB/s".to_owned(), medians[1] / medians[0]);
    let section = Section::new(SectionName::Page, &title, &lines, "", &[found]);
    section.with("candles", CANDLES).with("bytes", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_write_the_same() {
        let reply = reply();
        let plain = serde_json::to_value(Plain::from_reply(&reply)).unwrap();
        assert_eq!(plain, serde_json::to_value(&reply).unwrap());
        assert_eq!(plain["candles"]["edges"].as_array().unwrap().len(), 1000);
        assert_eq!(plain["candles"]["edges"][0]["node"]["volume"], "12345");
    }
}
