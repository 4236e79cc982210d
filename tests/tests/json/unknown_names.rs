//! Unknown parameters: J11. Unknown body fields and the order of the checks are in the cases; the forms of `Prefer`,
//! and which names are shown, in the unit tests of the edge's `decode`.

use std::time::Duration;

use mesh_testbed::{Answer, retry};
use mesh_tests::{MeshClient, UNKNOWN_ID, WITHDRAWAL, assert_problem, cases, fixture, metric};

use super::{varies_by, with};

const STRICT: (&str, &str) = ("prefer", "handling=strict");

async fn strict(mesh: &MeshClient, path: &str) -> Answer {
    mesh.get_with(path, STRICT.0, STRICT.1).await
}

/// The downloads of the sealed fixture.
fn downloads() -> [String; 2] {
    [
        "/api/v2/networkhistory/export?table=TABLE_BLOCKS&fromBlock=1&toBlock=3".to_owned(),
        fixture::LEDGER.to_owned(),
    ]
}

#[tokio::test]
async fn j11_what_is_ignored_is_named_whatever_the_answer() {
    let mesh = MeshClient::sealed_fixture().await;
    let mut paths: Vec<(String, u16)> = cases::answered().into_iter().map(|(_, path)| (path, 200)).collect();
    paths.extend(downloads().map(|path| (path, 200)));
    paths.push((format!("/api/v2/withdrawal/{UNKNOWN_ID}"), 404));
    paths.push(("/accounts?party=x".to_owned(), 400));
    paths.push(("/api/v2/candle".to_owned(), 400));
    paths.push(("/accounts?party=a&party=b".to_owned(), 400));
    for (path, status) in paths {
        let plain = mesh.get(&path).await;
        assert_eq!((plain.status, plain.header("x-ignored")), (status, None), "{path}");
        assert!(!varies_by(&plain, "Prefer"), "{path}");
        let strange = with(&path, "foo=1&pretty&b%2Car=2&foo=3");
        // The second and third answer come from the cache, where there is one.
        for method in ["GET", "GET", "GET", "HEAD"] {
            let answer = mesh.send(method, &strange).await;
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header("x-ignored"), Some("foo, b%2Car"), "{method} {path}");
            assert_eq!(answer.header("preference-applied"), None, "{method} {path}");
            assert!(varies_by(&answer, "Prefer"), "{method} {path}: strict requests are refused");
        }
        let Some(tag) = plain.header("etag") else { continue };
        for _ in 0..2 {
            let unchanged = mesh.get_with(&strange, "if-none-match", tag).await;
            let ignored = unchanged.header("x-ignored");
            assert_eq!((unchanged.status, ignored), (304, Some("foo, b%2Car")), "{path}");
        }
    }
}

#[tokio::test]
async fn j11_parts_and_chunks_of_downloads_name_what_is_ignored() {
    let mesh = MeshClient::sealed_fixture().await;
    let [history, ledger] = downloads();
    for (path, name, value, status) in [
        (&history, "range", "bytes=0-9", 206),
        (&history, "range", "bytes=999999999-", 416),
        (&history, "accept", "application/x-ndjson", 200),
        (&ledger, "accept", "application/x-ndjson", 200),
        (&ledger, "accept-encoding", "gzip", 200),
    ] {
        let answer = mesh.get_with(&with(path, "foo=1"), name, value).await;
        assert_eq!((answer.status, answer.header("x-ignored")), (status, Some("foo")), "{path} {value}");
        let answer = mesh.get_with_all(path, &[(name, value), STRICT]).await;
        let applied = answer.header("preference-applied");
        assert_eq!((answer.status, applied), (status, Some("handling=strict")), "{path} {value}");
        assert!(varies_by(&answer, "Prefer"), "{path} {value}");
    }
}

#[tokio::test]
async fn j11_strict_requests_with_unknown_names_are_refused_with_the_nearest_known_ones() {
    let mesh = MeshClient::sealed_fixture().await;
    for (path, inner) in [
        ("/accounts?partyId=x".to_owned(), "partyId: did you mean party?"),
        (format!("/api/v2/withdrawal/{WITHDRAWAL}?id=x"), "id (known: atBlock, chainId, pretty)"),
        (with(&downloads()[0], "tabel=x"), "tabel: did you mean table?"),
    ] {
        // Also when a lenient client has put the target into the cache.
        assert_eq!(mesh.get(&path).await.status, 200, "{path}");
        for method in ["GET", "HEAD"] {
            let answer = mesh.send_with(method, &path, &[STRICT, ("if-none-match", "*")]).await;
            assert_eq!(answer.status, 400, "{method} {path}");
            assert_eq!(answer.header("preference-applied"), Some("handling=strict"), "{method} {path}");
            assert_eq!(answer.header("x-ignored"), None, "{method} {path}");
            assert!(varies_by(&answer, "Prefer"), "{method} {path}");
        }
        let problem = assert_problem(&strict(&mesh, &path).await, 400, 3, 10_015);
        assert_eq!((problem.message.as_str(), problem.inner.as_str()), ("a parameter is unknown", inner));
        assert_eq!(mesh.get(&path).await.status, 200, "{path}: lenient clients are answered as before");
    }
}

#[tokio::test]
async fn j11_strict_requests_without_unknown_names_are_answered_as_others() {
    let mesh = MeshClient::sealed_fixture().await;
    for path in cases::answered().into_iter().map(|(_, path)| path).chain(downloads()) {
        let plain = mesh.get(&path).await;
        let answer = strict(&mesh, &path).await;
        assert_eq!((answer.status, &answer.body), (200, &plain.body), "{path}");
        assert_eq!(answer.header("preference-applied"), Some("handling=strict"), "{path}");
        assert_eq!(answer.header("etag"), plain.header("etag"), "{path}");
        assert!(varies_by(&answer, "Prefer"), "{path}");
        let Some(tag) = plain.header("etag") else { continue };
        let unchanged = mesh.get_with_all(&path, &[("if-none-match", tag), STRICT]).await;
        let applied = unchanged.header("preference-applied");
        assert_eq!((unchanged.status, applied), (304, Some("handling=strict")), "{path}");
    }
}

#[tokio::test]
async fn strict_requests_are_answered_from_the_cache_and_others_on_the_fast_path_as_before() {
    let (_database, mesh, mesh_client) = fixture::start(|setup| setup).await;
    for (path, prefer, source) in [
        ("/accounts", "handling=strict", "cache"),
        ("/accounts?foo=1", "", "kept"),
        ("/accounts?foo=1", "handling=lenient", "cache"),
    ] {
        // An answer is fresh for a second, and a busy machine may take longer than that between two requests.
        retry(Duration::from_secs(30), async || {
            let headers = [("prefer", prefer)];
            let get = || mesh_client.get_with_all(path, if prefer.is_empty() { &[] } else { &headers });
            get().await;
            let reads = format!("mesh_edge_reads_total{{source=\"{source}\"}} ");
            let before = metric(&mesh, "edge", &reads).await;
            let answer = get().await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let ignored = path.contains("foo").then_some("foo");
            assert_eq!(answer.header("x-ignored"), ignored, "{path} {prefer}");
            let after = metric(&mesh, "edge", &reads).await;
            if after == before + 1 {
                Ok(())
            } else {
                Err(format!("{path} {prefer}: {source} {before}, {after}"))
            }
        })
        .await;
    }
}
