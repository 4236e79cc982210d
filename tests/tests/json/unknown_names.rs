//! Unknown parameters and body fields: J11.

use std::time::Duration;

use mesh_testbed::{Answer, Mesh, retry};
use mesh_tests::{
    cases,
    client::MeshClient,
    fixture::{self, ASSET, MARKET, PARTY, UNKNOWN_ID, WITHDRAWAL},
    problem::assert_problem,
    rpc::{Call, Rpc},
};
use reqwest::Method;

const STRICT: (&str, &str) = ("prefer", "handling=strict");

async fn strict(mesh: &MeshClient, path: &str) -> Answer {
    mesh.get_with(path, STRICT.0, STRICT.1).await
}

async fn strict_post(mesh: &MeshClient, path: &str, body: &str) -> Answer {
    let request = mesh.request(Method::POST, path).header(STRICT.0, STRICT.1);
    Answer::to(request.header("content-type", "application/json").body(body.to_owned())).await
}

/// A path with further parameters.
fn with(path: &str, more: &str) -> String {
    format!("{path}{}{more}", if path.contains('?') { '&' } else { '?' })
}

/// The downloads of the sealed fixture.
fn downloads() -> [String; 2] {
    [
        "/api/v2/networkhistory/export?table=TABLE_BLOCKS&fromBlock=1&toBlock=3".to_owned(),
        format!("/api/v2/ledgerentry/export?partyId={PARTY}&assetId={ASSET}"),
    ]
}

fn varies_by_prefer(answer: &Answer) -> bool {
    answer.headers.get_all("vary").iter().any(|value| value == "Prefer")
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
        assert!(!varies_by_prefer(&plain), "{path}");
        let strange = with(&path, "foo=1&pretty&b%2Car=2&foo=3");
        // The second and third answer come from the cache, where there is one.
        for method in [Method::GET, Method::GET, Method::GET, Method::HEAD] {
            let answer = Answer::to(mesh.request(method.clone(), &strange)).await;
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header("x-ignored"), Some("foo, b%2Car"), "{method} {path}");
            assert_eq!(answer.header("preference-applied"), None, "{method} {path}");
            assert!(varies_by_prefer(&answer), "{method} {path}: strict requests are refused");
        }
        let Some(tag) = plain.header("etag") else { continue };
        for _ in 0..2 {
            let unchanged = mesh.get_with(&strange, "if-none-match", tag).await;
            assert_eq!(
                (unchanged.status, unchanged.header("x-ignored")),
                (304, Some("foo, b%2Car")),
                "{path}"
            );
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
        let request = mesh.request(Method::GET, path).header(name, value);
        let answer = Answer::to(request.header(STRICT.0, STRICT.1)).await;
        let applied = answer.header("preference-applied");
        assert_eq!((answer.status, applied), (status, Some("handling=strict")), "{path} {value}");
        assert!(varies_by_prefer(&answer), "{path} {value}");
    }
}

#[tokio::test]
async fn j11_a_name_in_a_header_is_printable_and_short_and_there_are_ten_at_most() {
    let mesh = MeshClient::fixture().await;
    let long = "x".repeat(100);
    let many: Vec<String> = (0..20).map(|number| format!("p{number}=1")).collect();
    for (query, ignored) in [
        ("Party=x", "Party"),
        ("a%0D%0AX-Injected:1=1", "a%0D%0AX-Injected:1"),
        ("%C3%A4=1", "%C3%A4"),
        ("=1", "\"\""),
        ("pagination=1&pagination.size=2", "pagination, pagination.size"),
        (long.as_str(), &long[..64]),
        (&many.join("&"), "p0, p1, p2, p3, p4, p5, p6, p7, p8, p9"),
    ] {
        let answer = mesh.get(&format!("/accounts?{query}")).await;
        assert_eq!((answer.status, answer.header("x-ignored")), (200, Some(ignored)), "{query}");
        assert_eq!(answer.header("x-injected"), None);
    }
    for query in ["", "&&", "party=", "pretty=false", "market&party"] {
        let answer = mesh.get(&format!("/accounts?{query}")).await;
        assert_eq!((answer.status, answer.header("x-ignored")), (200, None), "{query}");
    }
}

#[tokio::test]
async fn j11_unknown_fields_of_a_body_are_named_by_their_paths() {
    let mesh = MeshClient::fixture().await;
    let body = r#"{"foo":{"bar":1},"tx":{"more":null,"pow":{"tid":"x","nonc":1},"input_data":"AQI="},"Type":1,"foo":2}"#;
    let answer = mesh.post("/transaction?x=1&pretty", body).await;
    // No tx-relay runs: the body passed.
    assert_problem(&answer, 503, 14, 10_000);
    assert_eq!(answer.header("x-ignored"), Some("x, foo, tx.more, tx.pow.nonc, Type"));
    let malformed = mesh.post("/transaction", r#"{"foo":1,"type":"TYPE_FOO","bar":1}"#).await;
    assert_problem(&malformed, 400, 3, 10_015);
    assert_eq!(malformed.header("x-ignored"), Some("foo"), "it is read up to the fault");

    let answer = strict_post(&mesh, "/transaction", body).await;
    let problem = assert_problem(&answer, 400, 3, 10_015);
    assert_eq!(problem.message, "a field of the body is unknown");
    let pow = "tx.pow.nonc: did you mean tx.pow.nonce?";
    assert!(problem.inner.contains(pow) && problem.inner.contains("Type: did you mean type?"), "{problem:?}");
    assert_eq!(answer.header("x-ignored"), None, "it is refused, not ignored");
    let problem = assert_problem(&strict_post(&mesh, "/transaction?type=x", "{}").await, 400, 3, 10_015);
    assert_eq!(problem.inner, "type (known: pretty)");
    let known = strict_post(&mesh, "/transaction?pretty", r#"{"tx":{"input_data":"AQI="},"type":1}"#).await;
    assert_problem(&known, 503, 14, 10_000);
    assert_eq!(known.header("preference-applied"), Some("handling=strict"));
}

#[tokio::test]
async fn j11_strict_requests_with_unknown_names_are_refused_with_the_nearest_known_ones() {
    let mesh = MeshClient::sealed_fixture().await;
    let candles = format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}");
    let [history, _] = downloads();
    for (path, inner) in [
        ("/accounts?partyId=x".to_owned(), "partyId: did you mean party?"),
        (
            "/accounts?foo=1&PARTY=x".to_owned(),
            "PARTY: did you mean party?; foo (known: party, market, pagination.first, pagination.after, \
             pagination.last, pagination.before, pagination.newestFirst, pretty)",
        ),
        (
            "/accounts?=1".to_owned(),
            "\"\" (known: party, market, pagination.first, pagination.after, pagination.last, pagination.before, \
             pagination.newestFirst, pretty)",
        ),
        ("/api/v2/delegations?first=1".to_owned(), "first: did you mean pagination.first?"),
        (format!("{candles}&from=1"), "from: did you mean fromTimestamp?"),
        (format!("/api/v2/withdrawal/{WITHDRAWAL}?id=x"), "id (known: pretty)"),
        (with(&history, "tabel=x"), "tabel: did you mean table?"),
    ] {
        // Also when a lenient client has put the target into the cache.
        assert_eq!(mesh.get(&path).await.status, 200, "{path}");
        for method in [Method::GET, Method::HEAD] {
            let request = mesh.request(method.clone(), &path).header(STRICT.0, STRICT.1);
            let answer = Answer::to(request.header("if-none-match", "*")).await;
            assert_eq!(answer.status, 400, "{method} {path}");
            assert_eq!(answer.header("preference-applied"), Some("handling=strict"), "{method} {path}");
            assert_eq!(answer.header("x-ignored"), None, "{method} {path}");
            assert!(varies_by_prefer(&answer), "{method} {path}");
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
        assert_eq!(answer.header("vary"), plain.header("vary"), "{path}");
        assert!(varies_by_prefer(&answer), "{path}");
        let Some(tag) = plain.header("etag") else { continue };
        let request = mesh.request(Method::GET, &path).header("if-none-match", tag);
        let unchanged = Answer::to(request.header(STRICT.0, STRICT.1)).await;
        let applied = unchanged.header("preference-applied");
        assert_eq!((unchanged.status, applied), (304, Some("handling=strict")), "{path}");
    }
}

#[tokio::test]
async fn j11_the_preference_is_found_in_any_form_of_the_header() {
    let mesh = MeshClient::fixture().await;
    for lines in [
        &["handling=strict"][..],
        &["respond-async, wait=10", "Handling=\"strict\"; x=y"],
        &["handling=strict, handling=lenient"],
    ] {
        let request = lines.iter().fold(mesh.request(Method::GET, "/accounts?foo=1"), |request, line| {
            request.header("prefer", *line)
        });
        let answer = Answer::to(request).await;
        let applied = answer.header("preference-applied");
        assert_eq!((answer.status, applied), (400, Some("handling=strict")), "{lines:?}");
    }
    for line in
        ["", "handling=lenient", "return=minimal; handling=strict", "handling=lenient, handling=strict"]
    {
        let answer = mesh.get_with("/accounts?foo=1", "prefer", line).await;
        assert_eq!((answer.status, answer.header("x-ignored")), (200, Some("foo")), "{line}");
        assert_eq!(answer.header("preference-applied"), None, "{line}");
    }
}

#[tokio::test]
async fn j11_unknown_parameters_are_refused_after_malformed_ones_and_before_missing_ones() {
    let mesh = MeshClient::fixture().await;
    for (query, number) in [
        ("foo=1&pagination.first=x", 10_028),
        ("foo=1&fromTimestamp=x", 10_042),
        ("foo=1&fromTimestamp=5", 10_042),
        ("foo=1&pretty=maybe", 10_015),
        ("pagination.first=0&foo=1", 10_015),
        ("foo=1", 10_015),
        ("pagination.first=0", 10_030),
    ] {
        let answer = strict(&mesh, &format!("/api/v2/candle?{query}")).await;
        let problem = assert_problem(&answer, 400, 3, number);
        let is_of_names = problem.message == "a parameter is unknown";
        assert_eq!(is_of_names, number == 10_015 && !query.contains("maybe"), "{query}: {problem:?}");
    }
    let body = strict_post(&mesh, "/transaction?foo=1", "{").await;
    assert_eq!(assert_problem(&body, 400, 3, 10_015).message, "the body is malformed");
}

#[tokio::test]
async fn j11_a_field_of_the_path_is_no_parameter_of_the_query() {
    let mesh = MeshClient::fixture().await;
    let path = format!("/api/v2/withdrawal/{WITHDRAWAL}");
    let plain = mesh.get(&path).await;
    for id in [UNKNOWN_ID, "", "x"] {
        let answer = mesh.get(&format!("{path}?id={id}")).await;
        assert_eq!((answer.status, answer.json()), (200, plain.json()), "{id}");
        assert_eq!(answer.header("x-ignored"), Some("id"), "{id}");
    }
}

#[tokio::test]
async fn j11_over_grpc_unknown_fields_are_ignored_and_a_preference_changes_nothing() {
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let mut call = Call::from_path("/accounts").unwrap();
    let plain = rpc.call(&call).await.unwrap().into_inner();
    // Field 31, a number.
    call.message = [&call.message[..], &[0xf8, 0x01, 5]].concat().into();
    let mut request = tonic::Request::new(call.message.clone());
    request.metadata_mut().insert("prefer", "handling=strict".parse().unwrap());
    assert_eq!(rpc.call_with(&call, request).await.unwrap().into_inner(), plain);
}

/// How many reads of the edge came from here.
async fn reads(mesh: &Mesh, source: &str) -> u64 {
    let page = mesh.service("edge").admin("/metrics").await;
    let name = format!("mesh_edge_reads_total{{source=\"{source}\"}} ");
    page.text().lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or_default()
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
        retry(Duration::from_secs(10), async || {
            let get = || {
                let request = mesh_client.request(Method::GET, path);
                Answer::to(if prefer.is_empty() { request } else { request.header("prefer", prefer) })
            };
            get().await;
            let before = reads(&mesh, source).await;
            let answer = get().await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let ignored = path.contains("foo").then_some("foo");
            assert_eq!(answer.header("x-ignored"), ignored, "{path} {prefer}");
            let after = reads(&mesh, source).await;
            if after == before + 1 {
                Ok(())
            } else {
                Err(format!("{path} {prefer}: {source} {before}, {after}"))
            }
        })
        .await;
    }
}
