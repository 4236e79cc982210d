//! Watches over a WebSocket (F1-F3): states, errors, limits and ends.

use std::time::Instant;

use futures_util::future::join_all;
use mesh_testbed::TlsClient;
use mesh_tests::{HANDSHAKE, MeshClient, WebSocket, assert_problem, metric, raw, read_body};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{LIMITS, assert_spread, limits::trades, start, withdrawal, write_block, write_trade};

async fn open(client: &MeshClient) -> WebSocket {
    WebSocket::open(client.url(), &[]).await.unwrap_or_else(|status| panic!("the answer is {status}"))
}

/// Begins a watch, which must be answered.
async fn assert_watch_is_answered(socket: &mut WebSocket) {
    socket.watch("a", LIMITS).await;
    assert!(socket.news().await["answer"].is_object());
}

/// Code and application number of the error of a frame with this id.
#[track_caller]
pub(super) fn refusal(frame: &Value, id: &str) -> (i64, i64) {
    assert_eq!((&frame["id"], frame.as_object().map(|frame| frame.len())), (&json!(id), Some(2)), "{frame}");
    let problem = read_body(&frame["error"]).unwrap_or_else(|wrong| panic!("{wrong}: {frame}"));
    (problem.code, problem.number)
}

#[tokio::test]
async fn each_state_is_a_frame_until_the_watch_is_ended() {
    let (database, mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut socket = open(&client).await;
    socket.watch("a", &withdrawal()).await;
    let plain = client.get(&withdrawal()).await.json();
    assert_eq!(socket.frame().await, json!({"id": "a", "height": "3", "answer": plain}));
    socket.watch("é \"b\"", &withdrawal()).await;
    assert_eq!(socket.frame().await, json!({"id": "é \"b\"", "height": "3", "answer": plain}));
    write_block(&writer, 4, Some("new")).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let frame = socket.news().await;
        assert_eq!((&frame["height"], &frame["answer"]["withdrawal"]["ref"]), (&json!("4"), &json!("new")));
        ids.push(frame["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    assert_eq!(ids, ["a", "é \"b\""]);
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches ").await, 2);
    socket.send(r#"{"id":"a","unwatch":true}"#).await;
    socket.send(r#"{"id":"a","unwatch":true}"#).await;
    assert_eq!(refusal(&socket.news().await, "a"), (3, 10_015));
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches ").await, 1);
    for height in 5..7 {
        write_block(&writer, height, Some(&height.to_string())).await;
        let frame = socket.news().await;
        assert_eq!((&frame["id"], &frame["height"]), (&json!("é \"b\""), &json!(height.to_string())));
    }
    socket.watch("a", LIMITS).await;
    assert_eq!(socket.news().await["id"], "a", "its id is free again");
    socket.close().await;
    mesh.service("edge").until_metric("mesh_edge_watches ", |watches| watches == 0.0).await;
}

#[tokio::test]
async fn a_watch_after_a_height_begins_with_the_next_block() {
    let (database, _mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut socket = open(&client).await;
    let longest = "é".repeat(64);
    let after = |id: &str, height: Value| json!({"id": id, "watch": LIMITS, "after": height}).to_string();
    socket.send(after("above", json!("99"))).await;
    assert_eq!(socket.frame().await["answer"], client.get(LIMITS).await.json(), "it counts as none");
    socket.send(after("below", json!("02"))).await;
    assert_eq!(socket.frame().await["answer"], client.get(LIMITS).await.json());
    socket.send(after(&longest, json!(3))).await;
    assert_eq!(socket.frame().await, json!({"id": longest, "height": "3"}), "it has begun");
    write_block(&writer, 4, None).await;
    let frame = socket.news().await;
    assert_eq!((&frame["id"], &frame["height"]), (&json!(longest), &json!("4")));
}

#[tokio::test]
async fn a_refused_frame_has_the_error_of_the_plain_read_and_the_connection_goes_on() {
    let client = MeshClient::fixture().await;
    let mut socket = open(&client).await;
    let at_block = format!("{LIMITS}?atBlock=1");
    for path in ["/nowhere", "/api/v2/withdrawal/zz", "/api/v2/candle?pagination.first=0&candleId=x"] {
        socket.watch("a", path).await;
        let frame = socket.news().await;
        assert_eq!(frame, json!({"id": "a", "error": client.get(path).await.json()}));
    }
    let too_long = format!("/api/v2/markets?x={}", "y".repeat(9000));
    for (path, number) in [
        (&*at_block, 10_015),
        ("/health", 10_015),
        ("/watch?read=/api/v2/info", 10_015),
        ("", 10_000),
        (&too_long, 10_000),
    ] {
        socket.watch("a", path).await;
        assert_eq!(refusal(&socket.news().await, "a").1, number, "{path}");
    }
    let long_id = format!(r#"{{"id":"{}","watch":"/x"}}"#, "a".repeat(65));
    let longest = " ".repeat(16 << 10);
    for (text, id) in [
        ("", ""),
        (&longest, ""),
        ("x", ""),
        ("[]", ""),
        (r#" ["a","/x",null,null]"#, ""),
        ("{}", ""),
        (r#"{"id":1,"watch":"/x"}"#, ""),
        (r#"{"id":"","watch":"/x"}"#, ""),
        (&long_id, ""),
        (r#"{"id":"a"}"#, "a"),
        (r#"{"id":"a","watch":1}"#, "a"),
        (r#"{"id":"a","watch":"/x","more":1}"#, "a"),
        (r#"{"id":"a","watch":"/x","watch":"/y"}"#, "a"),
        (r#"{"id":"a","id":"b","watch":"/x"}"#, ""),
        (r#"{"id":"a","watch":"/x","unwatch":true}"#, "a"),
        (r#"{"id":"a","unwatch":false}"#, "a"),
        (r#"{"id":"a","unwatch":true}"#, "a"),
        (r#"{"id":"a","unwatch":true,"after":"1"}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":1.5}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":-1}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":[1]}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":""}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":"+1"}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":"1.0"}"#, "a"),
        (r#"{"id":"a","watch":"/x","after":"18446744073709551616"}"#, "a"),
        (r#"{"id":"a","watch":"/x"} {}"#, ""),
    ] {
        socket.send(text).await;
        assert_eq!(refusal(&socket.news().await, id), (3, 10_015), "{text}");
    }
    socket.send(Message::binary(b"{}".to_vec())).await;
    assert_eq!(refusal(&socket.news().await, ""), (3, 10_015));
    assert_watch_is_answered(&mut socket).await;
    socket.watch("a", LIMITS).await;
    assert_eq!(refusal(&socket.news().await, "a"), (3, 10_015), "its id is taken");
    socket.close().await;
}

#[tokio::test]
async fn watches_count_to_the_limits_of_the_connection_the_edge_and_the_address() {
    let (_database, mesh, client) =
        start(&[("MESH_EDGE_WATCHES", "66"), ("MESH_EDGE_WATCHES_PER_ADDRESS", "65")]).await;
    let (mut first, mut second) = (open(&client).await, open(&client).await);
    for number in 0..64 {
        first.watch(&number.to_string(), LIMITS).await;
    }
    for _ in 0..64 {
        assert!(first.news().await["answer"].is_object());
    }
    first.watch("64", LIMITS).await;
    assert_eq!(refusal(&first.news().await, "64"), (8, 10_000));
    assert_watch_is_answered(&mut second).await;
    second.watch("b", LIMITS).await;
    let refused = second.news().await;
    assert_eq!(refusal(&refused, "b"), (8, 10_000));
    assert_eq!(refused["error"]["details"][0]["inner"], "at most 65 at the same time");
    assert_eq!(metric(&mesh, "edge", "mesh_edge_watches ").await, 65);
    drop(first);
    mesh.service("edge").until_metric("mesh_edge_watches ", |watches| watches == 1.0).await;
}

#[tokio::test]
async fn each_watch_counts_to_the_rate_of_its_client() {
    let (_database, _mesh, client) =
        start(&[("MESH_EDGE_RATE_PER_S", "1"), ("MESH_EDGE_RATE_BURST", "5")]).await;
    let mut socket = open(&client).await;
    for id in 0..8 {
        socket.watch(&id.to_string(), LIMITS).await;
    }
    let mut refused = 0;
    for _ in 0..8 {
        let frame = socket.news().await;
        if frame["error"].is_object() {
            assert_eq!(refusal(&frame, frame["id"].as_str().unwrap()), (8, 400_001));
            refused += 1;
        }
    }
    assert!((2..=4).contains(&refused), "{refused}");
}

#[tokio::test]
async fn a_handshake_is_checked() {
    let (_database, mesh, client) = start(&[("MESH_EDGE_CORS_ORIGINS", "https://a.example")]).await;
    let url = mesh.url();
    let origin = |origin| HANDSHAKE.replace("\r\n\r\n", &format!("\r\nOrigin: {origin}\r\n\r\n"));
    for (request, status, code, number) in [
        (HANDSHAKE.replace("Version: 13", "Version: 8"), 426, 3, 10_000),
        (HANDSHAKE.replace("Sec-WebSocket-Version: 13\r\n", ""), 426, 3, 10_000),
        (HANDSHAKE.replace("Version: 13", "Version: 13\r\nSec-WebSocket-Version: 13"), 426, 3, 10_000),
        (HANDSHAKE.replace("Sec-WebSocket-Key", "X-Key"), 400, 3, 10_015),
        (HANDSHAKE.replace("dGhlIHNhbXBsZSBub25jZQ==", "dGhl"), 400, 3, 10_015),
        (HANDSHAKE.replace("dGhlIHNhbXBsZSBub25jZQ==", "no base64"), 400, 3, 10_015),
        (HANDSHAKE.replace("Connection: Upgrade\r\n", ""), 400, 3, 10_015),
        (HANDSHAKE.replace("/watch", "/watch?read=/api/v2/info"), 400, 3, 10_015),
        (HANDSHAKE.replace("/watch", "/nowhere"), 404, 5, 10_000),
        (HANDSHAKE.replace("GET", "POST"), 405, 12, 10_000),
        (origin("https://b.example"), 403, 7, 10_000),
        (origin("null"), 403, 7, 10_000),
        (HANDSHAKE.replace("Host", "Content-Length: 2\r\nExpect: 100-continue\r\nHost"), 400, 3, 10_015),
    ] {
        let answer = raw::answer_to(&url, &request).await;
        assert_problem(&answer, status, code, number);
        let version = (status == 426).then_some("13");
        assert_eq!(answer.header("sec-websocket-version"), version, "{answer:?}");
    }
    for asked in ["WebSocket", "h2c, websocket", " websocket ,x", "h2c\r\nUpgrade: websocket"] {
        let mut connection = raw::begin(&url, &HANDSHAKE.replace("websocket", asked)).await;
        assert_eq!(connection.head().await.unwrap().unwrap().0.status, 101, "{asked}");
    }
    for other in ["", "h2c", "websockets", "\"websocket\"", "websocket/13"] {
        let answer = raw::answer_to(&url, &HANDSHAKE.replace("websocket", other)).await;
        assert!(assert_problem(&answer, 400, 3, 10_015).message.contains("read"), "a plain request: {other}");
    }
    let own = raw::begin(&url, &origin("http://x")).await.head().await.unwrap().unwrap().0;
    assert_eq!(own.status, 101, "a page of the gateway itself");
    let mut old = raw::begin(&url, &HANDSHAKE.replace("HTTP/1.1", "HTTP/1.0")).await;
    assert!(raw::rest(&mut old).await.starts_with(b"HTTP/1.0 400 "), "HTTP/1.0 has no upgrade");
    let plain = raw::answer_to(&url, &HANDSHAKE.replace("/watch", LIMITS)).await;
    assert_eq!((plain.status, plain.header("upgrade")), (200, None), "another path ignores it");
    let mut connection = raw::begin(&url, HANDSHAKE).await;
    let (answer, _) = connection.head().await.unwrap().unwrap();
    assert_eq!(answer.status, 101);
    for (name, value) in [
        ("upgrade", Some("websocket")),
        ("connection", Some("Upgrade")),
        ("sec-websocket-accept", Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        ("sec-websocket-extensions", None),
        ("content-length", None),
        ("transfer-encoding", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert!(answer.header("x-request-id").is_some());
    let offer = ("sec-websocket-extensions", "permessage-deflate");
    let mut socket = WebSocket::open(client.url(), &[("origin", "https://a.example"), offer]).await.unwrap();
    assert_watch_is_answered(&mut socket).await;
}

#[tokio::test]
async fn frames_before_the_answer_to_the_handshake_are_refused() {
    let client = MeshClient::fixture().await;
    for early in [&b"\x81\x80\0\0\0\0"[..], b"GET /limits HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut connection = raw::connect(client.url()).await;
        connection.send(&[HANDSHAKE.as_bytes(), early].concat()).await.unwrap();
        assert_problem(&raw::answer(&mut connection).await, 400, 3, 10_015);
    }
}

#[tokio::test]
async fn a_handshake_after_a_plain_request_of_the_same_connection_is_answered() {
    let plain = format!("GET {LIMITS} HTTP/1.1\r\nHost: x\r\n\r\n");
    let (client, requests) = (MeshClient::fixture().await, format!("{plain}{plain}{HANDSHAKE}"));
    let mut connection = raw::begin(client.url(), &requests).await;
    for _ in 0..2 {
        assert_eq!(raw::answer(&mut connection).await.status, 200);
    }
    let (answer, stream) = connection.head_then_stream().await.unwrap();
    assert_eq!(answer.status, 101);
    let mut socket = WebSocket::after_handshake(stream).await;
    assert_watch_is_answered(&mut socket).await;
}

#[tokio::test]
async fn connections_close_one_after_the_other_with_1001_when_the_edge_stops() {
    let (_database, mesh, client) = start(&[]).await;
    let mut closing = Vec::new();
    for _ in 0..40 {
        let mut socket = open(&client).await;
        socket.watch("a", LIMITS).await;
        socket.news().await;
        closing.push(socket);
    }
    let stopped_at = Instant::now();
    let closed = join_all(closing.into_iter().map(async |mut socket: WebSocket| {
        assert_eq!(socket.closed().await, 1001);
        stopped_at.elapsed()
    }));
    let (status, ended_after) = tokio::join!(mesh.service("edge").stop(), closed);
    assert!(status.success(), "{status}");
    assert_spread(ended_after);
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_the_newest_state_of_each_watch() {
    let (database, mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    // A page of some 500 kB a block, so that the buffers of the system are soon full.
    writer.batch_execute(&trades(1, 1000)).await.unwrap();
    let path = "/api/v2/trades";
    let (mut slow, mut quick) = (WebSocket::open_narrow(client.url(), 4096).await, open(&client).await);
    slow.watch("a", path).await;
    slow.watch("b", "/api/v2/trades?pagination.first=900").await;
    quick.watch("q", path).await;
    quick.news().await;
    let last = 4 + 14;
    for height in 4..last {
        write_trade(&writer, height).await;
        assert_eq!(quick.news().await["height"], height.to_string(), "the other one is unharmed");
    }
    let (mut heights, newest) = ([Vec::new(), Vec::new()], last - 1);
    while heights.iter().any(|heights| heights.last() != Some(&newest)) {
        let frame = slow.news().await;
        let height: u64 = frame["height"].as_str().unwrap().parse().unwrap();
        heights[usize::from(frame["id"] == "b")].push(height);
    }
    for heights in &heights {
        assert!(heights.is_sorted() && heights.len() < 14, "{heights:?}");
    }
    assert!(metric(&mesh, "edge", "mesh_edge_watches_events_skipped_total ").await > 0);
}

#[tokio::test]
async fn it_works_over_tls() {
    let mesh = crate::tls::mesh().await;
    let tls = mesh.tls();
    for protocols in [&[][..], &[&b"http/1.1"[..]][..]] {
        let stream = TlsClient::connect(tls.http, &tls.files.ca, protocols).await.unwrap();
        let mut socket = WebSocket::over(stream, &[]).await.unwrap();
        socket.watch("a", LIMITS).await;
        assert_eq!(socket.news().await["answer"], MeshClient::new(mesh).get(LIMITS).await.json());
        socket.close().await;
    }
}
