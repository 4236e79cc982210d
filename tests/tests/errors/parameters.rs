//! Missing and malformed parameters of the operations that are read by GET, in every way that has a number.

use mesh_tests::{fixture::NOBODY, outside::Outside, problem::assert_problem};

/// Operation, parameter, request, application number. `{hex}` stands for a well-formed id.
const MALFORMED: &[(&str, &str, &str, i64)] = &[
    ("ListProtocolUpgradeProposals", "status", "/api/v2/upgrade/proposals?status=PENDING", 10015),
    ("ListProtocolUpgradeProposals", "status", "/api/v2/upgrade/proposals?status=4", 10015),
    ("ListProtocolUpgradeProposals", "status", "/api/v2/upgrade/proposals?status=-1", 10015),
    ("ListProtocolUpgradeProposals", "status", "/api/v2/upgrade/proposals?status=1.0", 10015),
    (
        "ListProtocolUpgradeProposals",
        "approvedBy",
        "/api/v2/upgrade/proposals?approvedBy={257 letters}",
        10015,
    ),
    ("GetOracleSpec", "oracleSpecId", "/api/v2/oracle/spec/x", 10043),
    ("GetOracleSpec", "oracleSpecId", "/api/v2/oracle/spec/{hex}0", 10043),
    ("GetOracleSpec", "oracleSpecId", "/api/v2/oracle/spec/%00", 10043),
    ("GetOracleSpec", "oracleSpecId", "/api/v2/oracle/spec/network", 10043),
    ("GetWithdrawal", "id", "/api/v2/withdrawal/x", 80005),
    ("GetWithdrawal", "id", "/api/v2/withdrawal/{hex}0", 80005),
    ("GetWithdrawal", "id", "/api/v2/withdrawal/0x{62 digits}", 80005),
    ("GetWithdrawal", "id", "/api/v2/withdrawal/%FF", 80005),
    ("ListAccounts", "party", "/accounts?party=x", 10013),
    ("ListAccounts", "party", "/accounts?party=NETWORK", 10013),
    ("ListAccounts", "market", "/accounts?market=x", 10011),
    ("ListAccounts", "market", "/accounts?market=network", 10011),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=x", 10041),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=trades_candle_2_minutes_{hex}", 10041),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=trades_candle_1_hour_x", 10041),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=trades_candle_1_hour", 10041),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=trades_candle_1_hour'_{hex}", 10041),
    ("ListCandleData", "fromTimestamp", "/api/v2/candle?{candle}&fromTimestamp=x", 10042),
    ("ListCandleData", "fromTimestamp", "/api/v2/candle?{candle}&fromTimestamp=-1", 10042),
    ("ListCandleData", "fromTimestamp", "/api/v2/candle?{candle}&fromTimestamp=9223372036854775808", 10042),
    ("ListCandleData", "toTimestamp", "/api/v2/candle?{candle}&toTimestamp=2023-06-20T10:00:00Z", 10042),
    ("ListCandleData", "toTimestamp", "/api/v2/candle?{candle}&toTimestamp=-1", 10042),
    ("ListCandleData", "toTimestamp", "/api/v2/candle?{candle}&fromTimestamp=2&toTimestamp=1", 10042),
    (
        "ListEpochRewardSummaries",
        "filter.assetIds",
        "/api/v2/rewards/epoch/summaries?filter.assetIds=a%20b",
        10029,
    ),
    ("ListEpochRewardSummaries", "filter.assetIds", "/api/v2/rewards/epoch/summaries?{51 assets}", 10029),
    (
        "ListEpochRewardSummaries",
        "filter.marketIds",
        "/api/v2/rewards/epoch/summaries?filter.marketIds=x",
        10029,
    ),
    ("ListEpochRewardSummaries", "filter.marketIds", "/api/v2/rewards/epoch/summaries?{51 markets}", 10029),
    (
        "ListEpochRewardSummaries",
        "filter.fromEpoch",
        "/api/v2/rewards/epoch/summaries?filter.fromEpoch=-1",
        10029,
    ),
    ("ListEpochRewardSummaries", "filter.toEpoch", "/api/v2/rewards/epoch/summaries?filter.toEpoch=x", 10029),
    (
        "ListEpochRewardSummaries",
        "filter.toEpoch",
        "/api/v2/rewards/epoch/summaries?filter.toEpoch=18446744073709551616",
        10029,
    ),
    (
        "ListEpochRewardSummaries",
        "filter.toEpoch",
        "/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1",
        10029,
    ),
    ("ListDelegations", "partyId", "/api/v2/delegations?partyId=network", 10013),
    ("ListDelegations", "nodeId", "/api/v2/delegations?nodeId=x", 10034),
    ("ListDelegations", "epochId", "/api/v2/delegations?epochId=x", 10036),
    ("ListDelegations", "epochId", "/api/v2/delegations?epochId=-1", 10036),
    ("ListDelegations", "epochId", "/api/v2/delegations?epochId=9223372036854775808", 10036),
    ("ExportNetworkHistory", "fromBlock", "/api/v2/networkhistory/export?fromBlock=x&{to, table}", 240_011),
    ("ExportNetworkHistory", "fromBlock", "/api/v2/networkhistory/export?fromBlock=-1&{to, table}", 240_011),
    ("ExportNetworkHistory", "toBlock", "/api/v2/networkhistory/export?fromBlock=1&toBlock=x", 240_011),
    ("ExportNetworkHistory", "toBlock", "/api/v2/networkhistory/export?fromBlock=1&toBlock=-1", 240_011),
    (
        "ExportNetworkHistory",
        "table",
        "/api/v2/networkhistory/export?fromBlock=1&table=TRADES&toBlock=1000",
        10015,
    ),
    (
        "ExportNetworkHistory",
        "table",
        "/api/v2/networkhistory/export?fromBlock=1&table=16&toBlock=1000",
        10015,
    ),
    ("ExportLedgerEntries", "partyId", "/api/v2/ledgerentry/export?partyId=x&assetId=VOTE", 10013),
    ("ExportLedgerEntries", "assetId", "/api/v2/ledgerentry/export?partyId=network&assetId=a.b", 10038),
    (
        "ExportLedgerEntries",
        "assetId",
        "/api/v2/ledgerentry/export?partyId=network&assetId={65 letters}",
        10038,
    ),
    (
        "ExportLedgerEntries",
        "dateRange.startTimestamp",
        "/api/v2/ledgerentry/export?{owner}&dateRange.startTimestamp=x",
        10044,
    ),
    (
        "ExportLedgerEntries",
        "dateRange.endTimestamp",
        "/api/v2/ledgerentry/export?{owner}&dateRange.endTimestamp=x",
        10044,
    ),
    ("GetTransaction", "hash", "/transaction/x", 10015),
    ("GetTransaction", "hash", "/transaction/{hex}0", 10015),
];

/// Operation, parameter, request, application number.
const MISSING: &[(&str, &str, &str, i64)] = &[
    ("GetOracleSpec", "oracleSpecId", "/api/v2/oracle/spec/", 10031),
    ("GetWithdrawal", "id", "/api/v2/withdrawal/", 80003),
    ("ListCandleIntervals", "marketId", "/api/v2/candle/intervals", 10003),
    ("ListCandleData", "candleId", "/api/v2/candle", 10030),
    ("ListCandleData", "candleId", "/api/v2/candle?candleId=", 10030),
    (
        "ExportNetworkHistory",
        "fromBlock",
        "/api/v2/networkhistory/export?toBlock=1000&table=TABLE_TRADES",
        240_011,
    ),
    (
        "ExportNetworkHistory",
        "toBlock",
        "/api/v2/networkhistory/export?fromBlock=1&table=TABLE_TRADES",
        240_011,
    ),
    ("ExportNetworkHistory", "table", "/api/v2/networkhistory/export?fromBlock=1&toBlock=1000", 240_010),
    (
        "ExportNetworkHistory",
        "table",
        "/api/v2/networkhistory/export?fromBlock=1&toBlock=1000&table=TABLE_UNSPECIFIED",
        240_010,
    ),
    ("ExportLedgerEntries", "partyId", "/api/v2/ledgerentry/export?assetId=VOTE", 10014),
    ("ExportLedgerEntries", "assetId", "/api/v2/ledgerentry/export?partyId=network", 10017),
    ("GetTransaction", "hash", "/transaction/", 10015),
];

fn request(written: &str) -> String {
    written
        .replace("{hex}", NOBODY)
        .replace("{candle}", &format!("candleId=trades_candle_1_hour_{NOBODY}"))
        .replace("{to, table}", "toBlock=1000&table=TABLE_TRADES")
        .replace("{owner}", "partyId=network&assetId=VOTE")
        .replace("{62 digits}", &"0".repeat(62))
        .replace("{65 letters}", &"a".repeat(65))
        .replace("{257 letters}", &"a".repeat(257))
        .replace("{51 assets}", &"filter.assetIds=VOTE&".repeat(51))
        .replace("{51 markets}", &format!("filter.marketIds={NOBODY}&").repeat(51))
}

#[tokio::test]
async fn a_malformed_parameter_is_refused_with_its_number_and_named() {
    let mesh = Outside::fixture().await;
    for (operation, parameter, written, number) in MALFORMED {
        let answer = mesh.get(&request(written)).await;
        let seen = assert_problem(&answer, 400, 3, *number);
        assert!(
            !seen.inner.is_empty(),
            "{operation}, {parameter}: the offending value is not named: {answer:?}"
        );
        assert!(seen.inner.len() <= 256, "{operation}, {parameter}: all of the offending value is repeated");
    }
}

#[tokio::test]
async fn a_missing_parameter_is_refused_with_its_number() {
    let mesh = Outside::fixture().await;
    for (_, _, written, number) in MISSING {
        assert_problem(&mesh.get(&request(written)).await, 400, 3, *number);
    }
}

#[tokio::test]
async fn a_parameter_given_twice_is_malformed_whatever_its_values_and_spellings() {
    let mesh = Outside::fixture().await;
    for path in [
        "/api/v2/upgrade/proposals?status=1&status=1",
        "/api/v2/upgrade/proposals?approvedBy=a&approved_by=a",
        "/accounts?party=network&party=network",
        "/accounts?party=network&party=",
        "/api/v2/candle?candleId=x&candle_id=y",
        "/api/v2/candle?candleId=&candleId=",
        "/api/v2/candle?fromTimestamp=1&from_timestamp=2",
        "/api/v2/rewards/epoch/summaries?filter.fromEpoch=1&filter.from_epoch=1",
        "/api/v2/delegations?epochId=1&epochId=1",
        "/api/v2/delegations?pagination.first=1&pagination.first=1",
        "/api/v2/delegations?pagination.newestFirst=1&pagination.newest_first=1",
        "/api/v2/networkhistory/export?fromBlock=1&from_block=1",
        "/api/v2/ledgerentry/export?dateRange.endTimestamp=1&date_range.end_timestamp=1",
    ] {
        assert_problem(&mesh.get(path).await, 400, 3, 10015);
    }
}

#[tokio::test]
async fn a_list_of_fifty_elements_is_taken() {
    let mesh = Outside::fixture().await;
    let assets = "filter.assetIds=VOTE&".repeat(50);
    let answer = mesh.get(&format!("/api/v2/rewards/epoch/summaries?{assets}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}
