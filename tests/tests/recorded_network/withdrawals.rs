//! GetWithdrawal: the latest version of every withdrawal.

use serde_json::json;

use crate::recorded_network::check::{UNKNOWN, with_check};

#[test]
fn every_withdrawal_is_shown_in_its_latest_version_and_an_unknown_one_is_not_found() {
    with_check("GetWithdrawal", async |recording, check| {
        let table = recording.table("withdrawals");
        let newest = table.newest(|row| row.text("id"), |row| row.ns("block_time"));
        assert_eq!(newest.len(), 2);
        for (id, row) in newest {
            let withdrawal = json!({
                "id": id,
                "partyId": row.text("party_id"),
                "amount": row.maybe("amount").unwrap_or("0"),
                "asset": row.text("asset"),
                "status": row.text("status"),
                "ref": row.text("ref"),
                "txHash": row.text("foreign_tx_hash"),
                "createdTimestamp": row.ns("created_timestamp").to_string(),
                "withdrawnTimestamp": row.ns("withdrawn_timestamp").to_string(),
                "ext": row.json("ext"),
            });
            let expected = json!({"withdrawal": withdrawal});
            for id in [id.to_owned(), id.to_uppercase()] {
                check.same(&format!("/api/v2/withdrawal/{id}"), &expected, 1).await;
            }
        }
        check.refused(&format!("/api/v2/withdrawal/{UNKNOWN}"), 404, 5, 150_001).await;
    });
}
