//! ListPositions: the latest position of every party in every market.

use serde_json::json;

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

const PATH: &str = "/api/v2/positions";

/// A decimal number as a whole one, half away from zero.
fn rounded(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let (sign, digits) = if let Some(digits) = whole.strip_prefix('-') { (-1, digits) } else { (1, whole) };
    let digits: i128 = digits.parse().expect("a number");
    (sign * (digits + i128::from(fraction.as_bytes()[0] >= b'5'))).to_string()
}

fn all(recording: &Recording) -> View {
    let table = recording.table("positions");
    let newest =
        table.newest(|row| (row.text("party_id"), row.text("market_id")), |row| row.ns("block_time"));
    let rows = newest.into_iter().map(|((party, market), row)| Row {
        key: vec![text(party), text(market)],
        node: json!({
            "marketId": market, "partyId": party, "openVolume": row.text("pending_open_volume"),
            "realisedPnl": rounded(row.text("pending_realised_pnl")),
            "unrealisedPnl": rounded(row.text("pending_unrealised_pnl")),
            "averageEntryPrice": rounded(row.text("pending_average_entry_market_price")),
            "lossSocialisationAmount": rounded(row.text("loss_socialisation_amount")),
            "status": row.text("distressed_status"),
            "updatedAt": row.ns("block_time").to_string(),
            "settled": {
                "openVolume": row.text("open_volume"), "realisedPnl": row.text("realised_pnl"),
                "unrealisedPnl": row.text("unrealised_pnl"),
                "averageEntryPrice": row.text("average_entry_price"),
            },
        }),
    });
    View { list: List::Positions, path: PATH.to_owned(), rows: rows.collect() }
}

#[test]
fn every_position_is_listed_in_its_latest_version_by_every_filter() {
    with_check("ListPositions", async |recording, check| {
        let all = all(recording);
        assert_eq!(all.rows.len(), 41);
        for size in [1, 2, 7, 1000] {
            all.walk(check, PATH, size).await;
        }
        for [party] in all.occurring(["partyId"]) {
            let found = all.filtered(|node| node["partyId"] == party);
            found.walk(check, &format!("{PATH}?partyId={}", party.to_uppercase()), 2).await;
        }
        for [market] in all.occurring(["marketId"]) {
            let found = all.filtered(|node| node["marketId"] == market);
            found.walk(check, &format!("{PATH}?marketId={market}"), 2).await;
        }
        for [party, market] in all.occurring(["partyId", "marketId"]) {
            let found = all.filtered(|node| node["partyId"] == party && node["marketId"] == market);
            assert_eq!(found.rows.len(), 1);
            found.compare(check, &format!("{PATH}?partyId={party}&marketId={market}")).await;
        }
        let nothing = all.filtered(|_| false);
        for filter in [format!("marketId={UNKNOWN}"), format!("partyId={UNKNOWN}")] {
            nothing.walk(check, &format!("{PATH}?{filter}"), 10).await;
        }
    });
}
