//! Times in parameters: J8.

use mesh_tests::{
    client::MeshClient,
    fixture::{ASSET, MARKET, PARTY},
    problem::assert_problem,
};

/// Spellings of one moment, percent-encoded or as a browser's address bar takes them.
const TEN_AND_A_SECOND: [&str; 8] = [
    "1687255201000000000",
    "2023-06-20T10:00:01Z",
    "2023-06-20t10:00:01.000z",
    "2023-06-20T12:00:01%2B02:00",
    "2023-06-20T12:00:01+02:00",
    "2023-06-20T07:30:01.000000000-02:30",
    "2023-06-20%2010:00:01Z",
    "2023-06-20+12:00:01+02:00",
];

fn candles(from: &str) -> String {
    format!("/api/v2/candle?candleId=trades_candle_block_{MARKET}&fromTimestamp={from}")
}

fn ledger(from: &str) -> String {
    format!("/api/v2/ledgerentry/export?partyId={PARTY}&assetId={ASSET}&dateRange.startTimestamp={from}")
}

#[tokio::test]
async fn j8_a_time_parameter_may_be_rfc_3339() {
    let mesh = MeshClient::fixture().await;
    let whole = mesh.get(&candles("0")).await.json();
    let page = mesh.get(&candles(TEN_AND_A_SECOND[0])).await;
    let file = mesh.get(&ledger(TEN_AND_A_SECOND[0])).await;
    assert_ne!(page.json(), whole, "the bound cuts something off");
    for time in TEN_AND_A_SECOND {
        let answer = mesh.get(&candles(time)).await;
        assert_eq!((answer.status, answer.json()), (200, page.json()), "{time}");
        assert_eq!(answer.header("etag"), page.header("etag"), "{time}: it is the same question");
        let answer = mesh.get(&ledger(time)).await;
        assert_eq!((answer.status, &answer.body), (200, &file.body), "{time}");
        assert_eq!(answer.header("content-disposition"), file.header("content-disposition"), "{time}");
    }
    let beginning = mesh.get(&candles("1970-01-01T00:00:00Z")).await;
    assert_eq!(beginning.json(), whole, "the beginning of Unix time is the open bound");
}

#[tokio::test]
async fn j8_a_malformed_time_is_refused_with_its_fields_number_and_what_is_expected() {
    let mesh = MeshClient::fixture().await;
    for (time, expected) in [
        ("tomorrow", "nanoseconds since 1970 or an RFC 3339 time such as 2026-11-23T00:00:00Z"),
        ("2023-06-20", "nanoseconds since 1970 or an RFC 3339 time such as 2026-11-23T00:00:00Z"),
        ("2023-06-20T10:00:00", "an offset from UTC after the time, Z or +02:00,"),
        ("2023-06-20T10:00:00.0000000001Z", "a fraction of at most nine digits"),
        ("2023-06-31T10:00:00Z", "an existing time between 1970 and 2262-04-11"),
        ("2263-01-01T00:00:00Z", "an existing time between 1970 and 2262-04-11"),
        ("9223372036854775808", "an existing time between 1970 and 2262-04-11"),
    ] {
        for (path, number, name) in
            [(candles(time), 10_042, "fromTimestamp"), (ledger(time), 10_044, "dateRange.startTimestamp")]
        {
            let problem = assert_problem(&mesh.get(&path).await, 400, 3, number);
            assert_eq!(problem.message, format!("{name} is malformed: {expected} expected"));
            assert_eq!(problem.inner, time);
        }
    }
}

#[tokio::test]
async fn j8_seconds_instead_of_nanoseconds_are_told_to_strict_requests_and_served_to_others() {
    let mesh = MeshClient::fixture().await;
    for (path, number, name) in
        [(candles("{}"), 10_042, "fromTimestamp"), (ledger("{}"), 10_044, "dateRange.startTimestamp")]
    {
        for time in ["1", "1687255201", "1687255201000", "1687255201000000"] {
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
        for time in ["0", "1687255201000000000", "1970-01-02T00:00:00Z"] {
            let path = path.replace("{}", time);
            assert_eq!(mesh.get_with(&path, "prefer", "handling=strict").await.status, 200, "{path}");
        }
    }
}
