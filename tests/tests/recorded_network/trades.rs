//! ListTrades: every trade, by market, by party on either side, and by time.

use serde_json::{Value, json};

use crate::{
    paging::{
        list::{List, Row, number},
        page::View,
    },
    recorded_network::{
        check::{UNKNOWN, with_check},
        recording::Recording,
    },
};

const PATH: &str = "/api/v2/trades";

fn all(recording: &Recording) -> View {
    let table = recording.table("trades");
    let rows = table.rows().map(|row| {
        let time = row.ns("synthetic_time");
        let aggressor = ["SIDE_UNSPECIFIED", "SIDE_BUY", "SIDE_SELL"][row.number::<usize>("aggressor")];
        assert_eq!(row.text("type"), "1");
        let node = json!({
            "id": row.text("id"), "marketId": row.text("market_id"), "price": row.text("price"),
            "size": row.text("size"), "buyer": row.text("buyer"), "seller": row.text("seller"),
            "aggressor": aggressor, "buyOrder": row.text("buy_order"), "sellOrder": row.text("sell_order"),
            "type": "TYPE_DEFAULT", "timestamp": time.to_string(),
        });
        Row { key: vec![number(time)], node }
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    View { list: List::Trades, path: PATH.to_owned(), rows }
}

fn is_of(node: &Value, party: &str) -> bool {
    node["buyer"] == party || node["seller"] == party
}

fn time(node: &Value) -> i64 {
    node["timestamp"].as_str().unwrap().parse().unwrap()
}

#[test]
fn every_trade_is_listed_by_market_and_by_party() {
    with_check("ListTrades, by market and party", async |recording, check| {
        let all = all(recording);
        assert_eq!(all.rows.len(), 18);
        for size in [1, 2, 7, 17, 18, 19, 5000] {
            all.walk(check, PATH, size).await;
        }
        for [market] in all.occurring(["marketId"]) {
            let found = all.filtered(|node| node["marketId"] == market);
            found.walk(check, &format!("{PATH}?marketId={market}"), 2).await;
        }
        for [buyer, seller] in all.occurring(["buyer", "seller"]) {
            for party in [buyer, seller] {
                let found = all.filtered(|node| is_of(node, party));
                for size in [1, 3, 1000] {
                    found.walk(check, &format!("{PATH}?partyId={party}"), size).await;
                }
                for [market] in all.occurring(["marketId"]) {
                    let found = found.filtered(|node| node["marketId"] == market);
                    found.walk(check, &format!("{PATH}?partyId={party}&marketId={market}"), 1).await;
                }
            }
        }
        let nothing = all.filtered(|_| false);
        for filter in [format!("marketId={UNKNOWN}"), format!("partyId={UNKNOWN}")] {
            nothing.walk(check, &format!("{PATH}?{filter}"), 10).await;
        }
    });
}

#[test]
fn a_range_of_time_includes_its_start_and_not_its_end() {
    with_check("ListTrades, by time", async |recording, check| {
        let all = all(recording);
        let times: Vec<i64> = all.rows.iter().map(|row| time(&row.node)).collect();
        for start in times.iter().step_by(4).flat_map(|time| [time - 1, *time, time + 1]) {
            let from = all.filtered(|node| time(node) >= start);
            from.compare(check, &format!("{PATH}?dateRange.startTimestamp={start}")).await;
            for end in times.iter().step_by(5).flat_map(|time| [*time, time + 1]).filter(|end| *end >= start)
            {
                let between = from.filtered(|node| time(node) < end);
                let range = format!("dateRange.startTimestamp={start}&dateRange.endTimestamp={end}");
                between.walk(check, &format!("{PATH}?{range}"), 4).await;
            }
        }
    });
}
