//! The order of checks (2.3): of two faults the earlier one is reported, for each pair of neighbours. That path,
//! method and size of the body come in this order, and before the body's syntax, is tested in `head`.

use mesh_tests::{MARKET, MeshClient, UNKNOWN_ID, assert_problem};

use crate::errors::failures::with_proxied_database;

/// Path and method, syntax, required parameters, pagination, ranges.
#[tokio::test]
async fn of_two_faults_the_earlier_one_is_reported() {
    let mesh = MeshClient::fixture().await;
    assert_problem(&mesh.get("/api/v2/candles?candleId=x").await, 404, 5, 10_000);
    assert_problem(&mesh.send("DELETE", "/api/v2/candle?candleId=x").await, 405, 12, 10_000);
    let candles =
        format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}&fromTimestamp=2&toTimestamp=1");
    let rewards = "/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1".to_owned();
    let trades = "/api/v2/trades?dateRange.startTimestamp=2&dateRange.endTimestamp=1".to_owned();
    let mut rows = vec![
        ("/api/v2/candle?pagination.first=x".to_owned(), 10_028),
        ("/api/v2/candle?pagination.first=1&pagination.first=1".to_owned(), 10_015),
        ("/api/v2/networkhistory/export?toBlock=1&table=TRADES".to_owned(), 10_015),
        ("/api/v2/ledgerentry/export?assetId=a.b".to_owned(), 10_038),
        ("/api/v2/withdrawal/?pretty=maybe".to_owned(), 10_015),
    ];
    for page in ["pagination.first=0", "pagination.first=1&pagination.last=1", "pagination.after=x"] {
        rows.push((format!("/api/v2/candle?{page}"), 10_030));
        rows.extend([&candles, &rewards, &trades].map(|path| (format!("{path}&{page}"), 10_028)));
    }
    rows.extend([(candles, 10_042), (rewards, 10_029), (trades, 10_044)]);
    for (path, number) in rows {
        assert_problem(&mesh.get(&path).await, 400, 3, number);
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
            (format!("{candles}&pagination.first=0"), 10028),
            ("/api/v2/rewards/epoch/summaries?filter.fromEpoch=2&filter.toEpoch=1".to_owned(), 10029),
            ("/api/v2/withdrawal/x".to_owned(), 80005),
        ] {
            assert_problem(&mesh_client.get(&path).await, 400, 3, number);
        }
        assert_problem(&mesh_client.get(&format!("/api/v2/withdrawal/{UNKNOWN_ID}")).await, 503, 14, 10000);
    });
}
