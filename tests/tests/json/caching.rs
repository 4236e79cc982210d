//! Freshness: J13 and the caching part of J15.

use mesh_testbed::{Answer, Mesh};
use mesh_tests::{BLOCK_TIME, HEIGHT, MARKET, MeshClient, UNKNOWN_ID, assert_problem, cases, fixture};

use super::{etag, with};
use crate::watch::write_block;

/// The operations whose answers carry the newest block (J13).
const FRESH: [&str; 18] = [
    "ListProtocolUpgradeProposals", "GetOracleSpec", "GetWithdrawal", "GetNetworkLimits", "ListAccounts",
    "ListCandleData", "ListEpochRewardSummaries", "ListDelegations", "ListMarkets", "ListAssets",
    "ListTrades", "ListPositions", "ListOrders", "GetOrder", "GetMarketDepth", "ListDeposits",
    "ListWithdrawals", "GetPortfolio",
];

fn fresh() -> impl Iterator<Item = String> {
    cases::answered().into_iter().filter(|(operation, _)| FRESH.contains(operation)).map(|(_, path)| path)
}

#[tokio::test]
async fn j13_only_data_operations_name_the_newest_block_under_one_weak_tag() {
    let mesh = MeshClient::fixture().await;
    for (operation, path) in cases::answered() {
        let answer = mesh.get(&path).await;
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "J15: {path}");
        let head = (answer.header("x-block-height"), answer.header("x-block-timestamp"));
        if !FRESH.contains(&operation) {
            assert_eq!((head, answer.header("etag")), ((None, None), None), "{path}");
            continue;
        }
        assert_eq!(head, (Some(HEIGHT), Some(BLOCK_TIME)), "{path}");
        let tag = etag(&answer);
        assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{tag}");
        let pretty = mesh.get_with(&with(&path, "pretty"), "accept-encoding", "gzip").await;
        assert_eq!(etag(&pretty), tag, "{path}");
        assert_eq!(etag(&mesh.send("HEAD", &path).await), tag, "{path}");
    }
    let unknown = mesh.get(&format!("/accounts?party={UNKNOWN_ID}")).await;
    assert_eq!(unknown.header("x-block-height"), Some(HEIGHT), "an empty list, too");
}

#[tokio::test]
async fn j13_tags_differ_by_operation_and_request() {
    let mesh = MeshClient::fixture().await;
    let mut tags: Vec<String> = Vec::new();
    let mut paths: Vec<String> = fresh().collect();
    paths.push("/accounts?party=network".to_owned());
    paths.push(format!("/accounts?market={MARKET}"));
    paths.push("/api/v2/delegations?pagination.first=1".to_owned());
    paths.push("/api/v2/delegations?pagination.last=1".to_owned());
    for path in &paths {
        tags.push(etag(&mesh.get(path).await));
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), paths.len());
}

#[tokio::test]
async fn j13_if_none_match_gives_304_without_a_body() {
    let mesh = MeshClient::fixture().await;
    for path in fresh() {
        let tag = etag(&mesh.get(&path).await);
        let strong = tag.trim_start_matches("W/").to_owned();
        for given in
            [tag.clone(), strong, format!("\"other\", {tag}"), "*".to_owned(), "\"a,b\", *".to_owned()]
        {
            for method in ["GET", "HEAD"] {
                let answer = mesh.send_with(method, &path, &[("if-none-match", &given)]).await;
                assert_eq!((answer.status, answer.body.len()), (304, 0), "{method} {path}, {given}");
                assert_eq!(etag(&answer), tag, "{path}");
                assert_eq!(answer.header("x-block-height"), Some(HEIGHT), "{path}");
                assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
                assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
            }
        }
        for other in ["\"other\"", "W/\"3-0\"", "\"a,*,b\"", "nonsense", ""] {
            assert_eq!(mesh.get_with(&path, "if-none-match", other).await.status, 200, "{path}, {other}");
        }
    }
}

#[tokio::test]
async fn j13_a_weak_tag_never_satisfies_if_match() {
    let mesh = MeshClient::fixture().await;
    let pages = ["/health", "/openapi.json", "/console/now"].map(str::to_owned);
    for path in cases::answered().into_iter().map(|(_, path)| path).chain(pages) {
        let tag = mesh.get(&path).await.header("etag").unwrap_or("\"none\"").to_owned();
        let strong = tag.trim_start_matches("W/").to_owned();
        for given in [tag, strong, String::new()] {
            for method in ["GET", "HEAD"] {
                // It comes before `If-None-Match` (RFC 9110, 13.2.2).
                let headers = [("if-match", &*given), ("if-none-match", "*")];
                let answer = mesh.send_with(method, &path, &headers).await;
                assert_eq!(answer.status, 412, "{method} {path}, {given}: {answer:?}");
                if method == "GET" {
                    assert_problem(&answer, 412, 9, 10_000);
                }
            }
        }
        assert_eq!(mesh.get_with(&path, "if-match", "*").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn j13_a_block_that_changes_nothing_keeps_the_tag_and_a_late_row_makes_a_new_one() {
    let (database, _mesh, mesh) = fixture::start(|setup| setup.without(&["export"])).await;
    let replica = Mesh::configure(&database).without(&["export"]).start().await;
    let replica = MeshClient::new(&replica);
    let mut before = Vec::new();
    for path in fresh() {
        let tag = etag(&mesh.get(&path).await);
        assert_eq!(etag(&replica.get(&path).await), tag, "from every replica: {path}");
        before.push((tag, path));
    }
    write_block(&database.connect().await, 4, None).await;
    for (tag, path) in before {
        for method in ["GET", "HEAD"] {
            // An answer may come from the cache for up to a second.
            let is_new = |answer: &Answer| answer.header("x-block-height") == Some("4");
            let answer = mesh.await_answer(method, &path, &[("if-none-match", &tag)], is_new).await;
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{method} {path}: {answer:?}");
            assert_eq!(etag(&answer), tag, "{path}");
            assert_eq!(answer.header("x-block-timestamp"), Some("1687258804000000000"), "{path}");
        }
        let whole = mesh.get(&path).await;
        assert_eq!((whole.status, etag(&whole)), (200, tag), "{path}");
    }

    let path = format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL);
    let before = etag(&mesh.get(&path).await);
    let late = "UPDATE withdrawals SET ref = 'late'";
    database.connect().await.batch_execute(late).await.expect("a row changes");
    let headers = [("if-none-match", before.as_str())];
    let after = mesh.await_answer("GET", &path, &headers, |answer| answer.status == 200).await;
    assert_eq!(after.header("x-block-height"), Some("4"), "the height is the same");
    assert_ne!(etag(&after), before);
}
