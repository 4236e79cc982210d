//! ListMarkets: the latest definition of every market, with its newest data.

use serde_json::{Value, json};

use crate::{
    paging::{
        list::{List, Row, text},
        page::View,
    },
    recorded_network::{
        check::{UNKNOWN, with_check},
        recording::Recording,
    },
};

const PATH: &str = "/api/v2/markets";

fn all(recording: &Recording) -> View {
    let (definitions, data) = (recording.table("markets"), recording.table("market_data"));
    let newest =
        data.newest(|row| row.text("market"), |row| (row.ns("block_time"), row.number::<i64>("seq_num")));
    let rows = definitions.newest(|row| row.text("id"), |row| row.ns("block_time")).into_iter();
    let rows = rows.map(|(id, row)| {
        let instrument = &row.json("tradable_instrument")["instrument"];
        let price = |column| newest.get(id).and_then(|data| data.maybe(column)).unwrap_or_default();
        let mut node = json!({
            "id": id, "code": instrument["code"], "name": instrument["name"],
            "quoteName": instrument["future"]["quoteName"],
            "settlementAsset": instrument["future"]["settlementAsset"],
            "decimalPlaces": row.number::<i32>("decimal_places"),
            "positionDecimalPlaces": row.number::<i32>("position_decimal_places"),
            "tradingMode": row.text("trading_mode"), "state": row.text("state"),
            "markPrice": price("mark_price"), "bestBidPrice": price("best_bid_price"),
            "bestOfferPrice": price("best_offer_price"), "openInterest": price("open_interest"),
        });
        if let Some(opened) = row.json("market_timestamps")["open"].as_i64().filter(|ns| *ns > 0) {
            node["openedAt"] = Value::String(opened.to_string());
        }
        Row { key: vec![text(id)], node }
    });
    View { list: List::Markets, path: PATH.to_owned(), rows: rows.collect() }
}

#[test]
fn every_market_is_listed_in_its_latest_version_by_every_filter() {
    with_check("ListMarkets", async |recording, check| {
        let all = all(recording);
        assert_eq!(all.rows.len(), 16);
        all.compare(check, PATH).await;
        for size in [1, 2, 15, 16, 17, 5000] {
            all.walk(check, PATH, size).await;
        }
        for [state] in all.occurring(["state"]) {
            let found = all.filtered(|node| node["state"] == state);
            found.compare(check, &format!("{PATH}?state={state}")).await;
            found.walk(check, &format!("{PATH}?state={state}"), 3).await;
        }
        for [asset, state] in all.occurring(["settlementAsset", "state"]) {
            let of_asset = all.filtered(|node| node["settlementAsset"] == asset);
            of_asset.walk(check, &format!("{PATH}?settlementAsset={}", asset.to_uppercase()), 2).await;
            let of_both = of_asset.filtered(|node| node["state"] == state);
            of_both.compare(check, &format!("{PATH}?settlementAsset={asset}&state={state}")).await;
        }
        let nothing = all.filtered(|_| false);
        for filter in [format!("settlementAsset={UNKNOWN}"), "state=STATE_CANCELLED".to_owned()] {
            nothing.walk(check, &format!("{PATH}?{filter}"), 10).await;
        }
    });
}
