//! Times in parameters: J8. The accepted forms are rows of the unit tests of the edge's `decode::time`, the refusals
//! rows of the cases.

use mesh_tests::{ASSET, MARKET, MeshClient, PARTY, assert_problem};

/// A path with a time in place of `{}`, its application number, and the name of its field.
fn bounds() -> [(String, i64, &'static str); 2] {
    let candles = format!("/api/v2/candle?candleId=trades_candle_block_{MARKET}&fromTimestamp={{}}");
    let range = format!("partyId={PARTY}&assetId={ASSET}&dateRange.startTimestamp={{}}");
    [
        (candles, 10_042, "fromTimestamp"),
        (format!("/api/v2/ledgerentry/export?{range}"), 10_044, "dateRange.startTimestamp"),
    ]
}

#[tokio::test]
async fn j8_equal_times_are_one_request() {
    let mesh = MeshClient::fixture().await;
    for (path, ..) in bounds() {
        let plain = mesh.get(&path.replace("{}", "1687255201000000000")).await;
        for time in ["2023-06-20T12:00:01%2B02:00", "2023-06-20+12:00:01+02:00"] {
            let answer = mesh.get(&path.replace("{}", time)).await;
            assert_eq!((answer.status, &answer.body), (200, &plain.body), "{time}");
            assert_eq!(answer.header("etag"), plain.header("etag"), "{time}");
            assert_eq!(answer.header("content-disposition"), plain.header("content-disposition"), "{time}");
        }
    }
}

#[tokio::test]
async fn j8_seconds_instead_of_nanoseconds_are_refused_to_strict_requests_and_served_to_others() {
    let mesh = MeshClient::fixture().await;
    for (path, number, name) in bounds() {
        for time in ["1687255201", "1687255201000000"] {
            let path = path.replace("{}", time);
            let answer = mesh.get(&path).await;
            assert_eq!((answer.status, answer.header("x-ignored")), (200, None), "{path}");
            // Also when the same target is in the cache.
            let strict = mesh.get_with(&path, "prefer", "handling=strict").await;
            let problem = assert_problem(&strict, 400, 3, number);
            let inner = format!("{name} {time} is in the year 1970: nanoseconds are expected");
            assert_eq!(problem.inner, inner);
            assert_eq!(strict.header("preference-applied"), Some("handling=strict"));
        }
        let path = path.replace("{}", "1687255201000000000");
        assert_eq!(mesh.get_with(&path, "prefer", "handling=strict").await.status, 200, "{path}");
    }
}
