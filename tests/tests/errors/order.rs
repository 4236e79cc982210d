//! The order of checks (2.3): of two faults the earlier one is reported, for each pair of neighbours. That path,
//! method and size of the body come in this order, and before the body's syntax, is tested in `head`.

use mesh_tests::{
    client::MeshClient,
    fixture::{MARKET, UNKNOWN_ID},
    problem::assert_problem,
};

use crate::errors::failures::with_proxied_database;

#[tokio::test]
async fn path_and_method_come_before_the_syntax_of_parameters() {
    let mesh = MeshClient::fixture().await;
    assert_problem(&mesh.get("/api/v2/candles?candleId=x").await, 404, 5, 10000);
    assert_problem(&mesh.send("DELETE", "/api/v2/candle?candleId=x").await, 405, 12, 10000);
    assert_problem(&mesh.get("/transaction/check?type=x").await, 405, 12, 10000);
}

#[tokio::test]
async fn syntax_comes_before_required_parameters() {
    let mesh = MeshClient::fixture().await;
    for (path, number) in [
        ("/api/v2/candle?pagination.first=x", 10028),
        ("/api/v2/candle?fromTimestamp=x", 10042),
        ("/api/v2/candle?pagination.first=1&pagination.first=1", 10015),
        ("/api/v2/networkhistory/export?toBlock=1&table=TRADES", 10015),
        ("/api/v2/ledgerentry/export?assetId=a.b", 10038),
        ("/api/v2/withdrawal/?pretty=maybe", 10015),
    ] {
        assert_problem(&mesh.get(path).await, 400, 3, number);
    }
}

#[tokio::test]
async fn required_parameters_come_before_pagination() {
    let mesh = MeshClient::fixture().await;
    for page in ["pagination.first=0", "pagination.first=1&pagination.last=1", "pagination.after=x"] {
        assert_problem(&mesh.get(&format!("/api/v2/candle?{page}")).await, 400, 3, 10030);
    }
}

#[tokio::test]
async fn pagination_comes_before_ranges() {
    let mesh = MeshClient::fixture().await;
    let candles =
        format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}&fromTimestamp=2&toTimestamp=1");
    let rewards = "/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1".to_owned();
    let trades = "/api/v2/trades?dateRange.startTimestamp=2&dateRange.endTimestamp=1".to_owned();
    for (path, number) in [(candles, 10042), (rewards, 10029), (trades, 10044)] {
        assert_problem(&mesh.get(&path).await, 400, 3, number);
        for page in ["pagination.first=0", "pagination.first=1&pagination.last=1", "pagination.after=x"] {
            assert_problem(&mesh.get(&format!("{path}&{page}")).await, 400, 3, 10028);
        }
    }
}

#[test]
fn every_check_of_the_request_comes_before_the_store() {
    with_proxied_database(async |proxied_database, mesh| {
        let mesh_client = MeshClient::new(mesh);
        proxied_database.cut();
        let candles = format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}");
        for (path, number) in [
            (format!("{candles}&fromTimestamp=2&toTimestamp=1"), 10042),
            (format!("{candles}&fromTimestamp=-1"), 10042),
            (format!("{candles}&pagination.first=0"), 10028),
            ("/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1".to_owned(), 10029),
            ("/api/v2/delegations?epochId=-1".to_owned(), 10036),
            ("/accounts?party=x".to_owned(), 10013),
            ("/api/v2/withdrawal/x".to_owned(), 80005),
        ] {
            assert_problem(&mesh_client.get(&path).await, 400, 3, number);
        }
        assert_problem(&mesh_client.get(&format!("/api/v2/withdrawal/{UNKNOWN_ID}")).await, 503, 14, 10000);
    });
}
