//! `/limits` tells the limits that hold.

use mesh_testbed::{Answer, Mesh};
use mesh_tests::{fixture, outside::Outside, raw::Connection};
use serde_json::Value;

use crate::openapi::document::Document;

#[tokio::test]
async fn limits_that_are_set_are_told_and_hold() {
    let database = fixture::database().await;
    let mesh = Mesh::configure(&database)
        .env("MESH_PAGE_DEFAULT", "1")
        .env("MESH_PAGE_MAX", "2")
        .env("MESH_ACCOUNTS_MAX_ROWS", "3")
        .env("MESH_EDGE_MAX_BODY_BYTES", "100")
        .env("MESH_QUERY_TIMEOUT_MS", "7000")
        .start()
        .await;
    let outside = Outside::of(&mesh);
    let document = Document::of(&outside).await;
    let answer = outside.get("/limits").await;
    assert_eq!(document.complaint(&document.operation("Limits"), &answer), None);
    let limits = answer.json();
    assert_eq!(limits["rows"]["pageDefault"], 1);
    assert_eq!(limits["rows"]["pageGreatest"], 2);
    assert_eq!(limits["rows"]["accountsGreatest"], 3);
    assert_eq!(limits["request"]["bodyBytes"], 100);
    assert_eq!(limits["time"]["queryMs"], 7000);

    let rows = async |query: &str| {
        let answer = outside.get(&format!("/api/v2/delegations{query}")).await;
        answer.json()["delegations"]["edges"].as_array().map(Vec::len)
    };
    assert_eq!((rows("").await, rows("?pagination.first=3").await), (Some(1), Some(2)));
    assert_eq!(outside.get("/accounts").await.status, 400);
    let post = |length: usize| {
        let request = outside.request(reqwest::Method::POST, "/transaction/check");
        Answer::to(request.header("content-type", "application/json").body(" ".repeat(length)))
    };
    assert_eq!((post(100).await.status, post(101).await.status), (400, 413));
}

#[tokio::test]
async fn limits_of_requests_hold_to_the_byte() {
    let outside = Outside::fixture().await;
    let limits = outside.get("/limits").await.json();
    let most = |name: &str| usize::try_from(limits["request"][name].as_u64().unwrap()).unwrap();
    let url = |length: usize| format!("/api/v2/info?x={}", "x".repeat(length - "/api/v2/info?x=".len()));
    let status = async |path: &str| outside.get(path).await.status;
    assert_eq!((status(&url(most("urlBytes"))).await, status(&url(most("urlBytes") + 1)).await), (200, 414));

    let list = |elements: usize| {
        format!("/api/v2/rewards/epoch/summaries?{}", vec!["filter.assetIds=A"; elements].join("&"))
    };
    let elements = most("listElements");
    assert_eq!((status(&list(elements)).await, status(&list(elements + 1)).await), (200, 400));

    let status = async |headers: &str| {
        let mut connection = Connection::open(outside.url()).await.unwrap();
        let request = format!("GET /api/v2/info HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        connection.send(request.as_bytes()).await.unwrap();
        connection.answer(false).await.unwrap().unwrap().status
    };
    let headers = |count: usize| (1..count).map(|at| format!("X-{at}: x\r\n")).collect::<String>();
    let most_headers = most("headers");
    assert_eq!((status(&headers(most_headers)).await, status(&headers(most_headers + 1)).await), (200, 431));
    let block = |bytes: usize| format!("X: {}\r\n", "x".repeat(bytes - "Host: x\r\nX: \r\n".len()));
    let most_bytes = most("headBytes");
    assert_eq!((status(&block(most_bytes)).await, status(&block(most_bytes + 1)).await), (200, 431));
    assert!(limits["rate"].as_object().unwrap().values().all(Value::is_u64));
}
