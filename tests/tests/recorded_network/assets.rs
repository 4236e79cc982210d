//! ListAssets: the latest version of every asset.

use serde_json::json;

use crate::{
    paging::{
        list::{List, Row, text},
        page::View,
    },
    recorded_network::{check::with_check, recording::Recording},
};

const PATH: &str = "/api/v2/assets";

fn all(recording: &Recording) -> View {
    let table = recording.table("assets");
    let newest = table.newest(|row| row.text("id"), |row| row.ns("block_time")).into_iter();
    let rows = newest.map(|(id, row)| Row {
        key: vec![text(id)],
        node: json!({
            "id": id, "name": row.text("name"), "symbol": row.text("symbol"),
            "decimals": row.number::<i32>("decimals"), "quantum": row.maybe("quantum").unwrap_or_default(),
            "status": row.text("status"), "erc20Contract": row.maybe("erc20_contract").unwrap_or_default(),
        }),
    });
    View { list: List::Assets, path: PATH.to_owned(), rows: rows.collect() }
}

#[test]
fn every_asset_is_listed_in_its_latest_version_by_its_status() {
    with_check("ListAssets", async |recording, check| {
        let all = all(recording);
        assert_eq!(all.rows.len(), 9);
        all.compare(check, PATH).await;
        for size in [1, 2, 8, 9, 10] {
            all.walk(check, PATH, size).await;
        }
        for status in ["PROPOSED", "REJECTED", "PENDING_LISTING", "ENABLED"] {
            let status = format!("STATUS_{status}");
            let found = all.filtered(|node| node["status"] == *status);
            found.walk(check, &format!("{PATH}?status={status}"), 2).await;
        }
        all.compare(check, &format!("{PATH}?status=STATUS_UNSPECIFIED")).await;
    });
}
