//! Operations about the network as a whole: limits, height, upgrade status, upgrade proposals.

use serde_json::json;

use crate::{
    paging::{list::List, page::View},
    recorded_network::{
        check::{Check, with_check},
        recording::with_recording,
    },
};

#[test]
fn the_limits_are_the_latest_recorded() {
    with_check("GetNetworkLimits", async |recording, check| {
        let table = recording.table("network_limits");
        let row = table.rows().max_by_key(|row| row.ns("block_time")).unwrap();
        let limits = json!({
            "canProposeMarket": row.flag("can_propose_market"),
            "canProposeAsset": row.flag("can_propose_asset"),
            "proposeMarketEnabled": row.flag("propose_market_enabled"),
            "proposeAssetEnabled": row.flag("propose_asset_enabled"),
            "genesisLoaded": row.flag("genesis_loaded"),
            "proposeMarketEnabledFrom": row.ns("propose_market_enabled_from").to_string(),
            "proposeAssetEnabledFrom": row.ns("propose_asset_enabled_from").to_string(),
        });
        check.same("/api/v2/network/limits", &json!({"limits": limits}), 1).await;
    });
}

#[test]
fn the_height_is_that_of_the_last_block_with_the_proof_of_work_in_force_there() {
    with_recording(async |recording| {
        let mut check = Check::without_head(recording, "LastBlockHeight");
        let (chain, parameters) = (recording.table("chain"), recording.table("network_parameters"));
        let newest = parameters.newest(|row| row.text("key"), |row| row.ns("block_time"));
        let value = |key: &str| newest[format!("spam.pow.{key}").as_str()].text("value");
        let number = |key: &str| value(key).parse::<u32>().unwrap();
        let expected = json!({
            "height": recording.head.height.to_string(),
            "hash": recording.head.hash,
            "chainId": chain.rows().next().unwrap().text("id"),
            "spamPowHashFunction": value("hashFunction"),
            "spamPowDifficulty": number("difficulty"),
            "spamPowNumberOfPastBlocks": number("numberOfPastBlocks"),
            "spamPowNumberOfTxPerBlock": number("numberOfTxPerBlock"),
            "spamPowIncreasingDifficulty": number("increaseDifficulty") == 1,
        });
        check.same("/blockchain/height", &expected, 1).await;
        check.done();
    });
}

#[test]
fn no_upgrade_was_recorded_so_none_is_ready_and_none_is_proposed() {
    with_recording(async |recording| {
        let mut check = Check::without_head(recording, "GetProtocolUpgradeStatus");
        check.same("/api/v2/upgrade/status", &json!({"ready": false}), 1).await;
        check.done();

        assert_eq!(recording.table("protocol_upgrade_proposals").len(), 0);
        let none = View::new(List::Proposals, "", Vec::new());
        let mut check = Check::new(recording, "ListProtocolUpgradeProposals");
        let statuses = ["UNSPECIFIED", "PENDING", "APPROVED", "REJECTED"]
            .map(|status| format!("status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_{status}"));
        let numbers = (0..4).map(|number| format!("status={number}"));
        let non_matching_filters =
            ["", "approvedBy=somebody", "status=1&approvedBy=somebody"].map(str::to_owned);
        for filter in statuses.into_iter().chain(numbers).chain(non_matching_filters) {
            let path = format!("/api/v2/upgrade/proposals?{filter}");
            none.compare(&mut check, &path).await;
            none.walk(&mut check, &path, 10).await;
        }
        check.done();
    });
}
