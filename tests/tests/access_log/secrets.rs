//! No log line contains what may be a client's secret: headers, queries, bodies and unknown paths.

use mesh_testbed::Answer;
use mesh_tests::{Call, MeshClient, Rpc, access::line};
use reqwest::Method;

use crate::access_log::logging_all;

/// Is sent in every part of a request that a client may choose freely.
const SECRET: &str = "Hunter2Hunter2";

#[tokio::test]
async fn no_header_query_body_or_unknown_path_is_written() {
    let (_, mesh) = logging_all().await;
    let mesh_client = MeshClient::new(mesh);
    let secret = |request: reqwest::RequestBuilder| {
        let request = request.header("authorization", format!("Bearer {SECRET}")).header("cookie", SECRET);
        request
            .header("user-agent", SECRET)
            .header("referer", format!("http://x/{SECRET}"))
            .header("x-api-key", SECRET)
    };
    let body = format!("{{\"tx\":\"{SECRET}\",\"{SECRET}\":1}}");
    for (method, path, body) in [
        (Method::GET, format!("/api/v2/delegations?partyId={SECRET}"), ""),
        (Method::GET, format!("/api/v2/delegations?{SECRET}=1"), ""),
        (Method::GET, format!("/accounts?x={SECRET}"), ""),
        (Method::GET, format!("/nowhere/{SECRET}?{SECRET}"), ""),
        (Method::GET, format!("/health?{SECRET}"), ""),
        (Method::POST, "/transaction".to_owned(), body.as_str()),
        (Method::POST, format!("/{SECRET}"), body.as_str()),
        (SECRET.parse().unwrap(), "/accounts".to_owned(), ""),
    ] {
        let answer = Answer::to(secret(mesh_client.request(method, &path)).body(body.to_owned())).await;
        line(mesh, answer.header("x-request-id").unwrap()).await;
    }
    let rpc = Rpc::connect(mesh).await;
    let call = Call::from_path("/accounts").unwrap();
    let request = call.with_metadata(&[("authorization", SECRET), ("x-request-id", "over-grpc")]);
    rpc.call_at(format!("/api.v2.Query/{SECRET}").parse().unwrap(), request)
        .await
        .expect_err("no such method");
    line(mesh, "over-grpc").await;
    // A request id with characters that are not allowed is replaced, so it must not be logged either.
    let answer = mesh_client.get_with("/accounts", "x-request-id", &format!("{SECRET} {SECRET}")).await;
    line(mesh, answer.header("x-request-id").unwrap()).await;
    let log = mesh.service("edge").log();
    assert!(!log.to_lowercase().contains(&SECRET.to_lowercase()), "{log}");
}

#[tokio::test]
async fn no_path_breaks_a_log_line() {
    let (_, mesh) = logging_all().await;
    let mesh_client = MeshClient::new(mesh);
    for path in
        ["/api/v2/withdrawal/%22%7D%0A%7B%22", "/api/v2/withdrawal/{}\u{e9}", "/transaction/%1b%5b31m"]
    {
        let answer = mesh_client.get(path).await;
        let line = line(mesh, answer.header("x-request-id").unwrap()).await;
        let path = line["path"].as_str().unwrap();
        assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{line}");
    }
    let long = mesh_client.get(&format!("/api/v2/withdrawal/{}", "a".repeat(7000))).await;
    let line = line(mesh, long.header("x-request-id").unwrap()).await;
    assert!(line["path"].as_str().is_some_and(|path| path.len() < 300), "{line}");
}
