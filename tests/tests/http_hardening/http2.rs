//! HTTP/2 frame by frame: the limits of a connection, and the GOAWAY of a stop.

use std::{collections::BTreeMap, time::Duration};

use mesh_testbed::http2::{
    AUTHORITY, Connection, DATA, END_STREAM, Frame, GOAWAY, HEADERS, RST_STREAM, SETTINGS, get_request,
};
use mesh_tests::{MeshClient, fixture};
use tokio::time::timeout;

use crate::http_hardening::TIME_LIMIT;

/// The field `host`, without Huffman coding.
const HOST: &[u8] = b"\x00\x04host";

/// `GET http://x/`.
fn valid_request() -> Vec<u8> {
    get_request("/", &[(AUTHORITY, "x")])
}

async fn connect(url: &str) -> Connection {
    Connection::open(url).await.expect("the edge listens")
}

async fn next(client: &mut Connection, kind: u8) -> Frame {
    let frame = timeout(TIME_LIMIT, client.next(kind)).await.expect("the edge sends a frame in time");
    frame.expect("the edge does not close before")
}

async fn request(client: &mut Connection, stream: u32, block: &[u8]) {
    client.send(&Frame::request(stream, block)).await.expect("the edge reads");
}

#[tokio::test]
async fn an_http_2_connection_announces_its_limits_and_answers() {
    let mesh = MeshClient::fixture().await;
    let mut client = connect(mesh.url()).await;
    let settings = next(&mut client, SETTINGS).await;
    let settings: BTreeMap<u16, u32> = settings
        .payload
        .chunks_exact(6)
        .map(|set| {
            (u16::from_be_bytes([set[0], set[1]]), u32::from_be_bytes([set[2], set[3], set[4], set[5]]))
        })
        .collect();
    let setting = |number: u16| settings.get(&number).copied();
    assert_eq!(setting(3), Some(128), "requests at the same time: {settings:?}");
    assert_eq!(setting(4).unwrap_or(65_535), 64 << 10, "bytes of one body: {settings:?}");
    assert!(setting(5).unwrap_or(16_384) <= 64 << 10, "bytes of a frame: {settings:?}");
    // Twice the limit: HTTP/2 adds an overhead per header, and slightly larger heads get a proper refusal.
    assert_eq!(setting(6), Some(32 << 10), "bytes of a head: {settings:?}");
    for stream in [1, 3] {
        request(&mut client, stream, &valid_request()).await;
        let answer = next(&mut client, HEADERS).await;
        assert_eq!(answer.stream, stream);
    }
}

/// Which hosts are invalid is in the unit tests of the edge's `admission::head`.
#[tokio::test]
async fn an_http_2_request_with_an_invalid_host_is_refused_and_others_on_its_connection_answered() {
    let mesh = MeshClient::fixture().await;
    let mut client = connect(mesh.url()).await;
    for (at, (fields, is_valid)) in [
        (&[(AUTHORITY, "u@x")][..], false),
        (&[(HOST, "x:99999")], false),
        (&[(AUTHORITY, "x"), (HOST, "a b")], false),
        // Another host than the authority's (RFC 9113, 8.3.1).
        (&[(AUTHORITY, "x"), (HOST, "x:8080")], false),
        (&[(AUTHORITY, "x"), (HOST, "X:80")], true),
        (&[(HOST, "x")], true),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = 2 * u32::try_from(at).unwrap() + 1;
        request(&mut client, stream, &get_request("/health", fields)).await;
        let answer = loop {
            let frame = timeout(TIME_LIMIT, client.frame()).await.expect("the edge answers in time");
            let frame = frame.expect("the connection is kept");
            if frame.stream == stream {
                break frame;
            }
        };
        // An invalid authority is refused by the HTTP/2 library. Such a refusal has no body.
        let is_reset = answer.kind == RST_STREAM && answer.payload == [0, 0, 0, 1];
        // `:status: 400` and `:status: 200` in HPACK's static table.
        let is_refused = is_reset || answer.kind == HEADERS && answer.payload.first() == Some(&0x8c);
        let is_answered = answer.kind == HEADERS && answer.payload.first() == Some(&0x88);
        assert!(if is_valid { is_answered } else { is_refused }, "{fields:?}: {answer:?}");
    }
}

#[tokio::test]
async fn an_answer_before_its_request_has_ended_is_not_followed_by_a_reset() {
    const END_HEADERS: u8 = 4;
    // `:method` by HPACK's static table.
    const GET: u8 = 0x82;
    const POST: u8 = 0x83;
    const CACHED: &str = "/accounts?party=network";
    const GRPC: (&[u8], &str) = (b"\x00\x0ccontent-type", "application/grpc");
    let mesh = MeshClient::fixture().await;
    let mut client = connect(mesh.url()).await;
    let mut stream = 1;
    mesh.get(CACHED).await;
    for (method, path, fields) in [
        (POST, "/nowhere", &[(AUTHORITY, "x")][..]),
        (POST, "/transaction", &[(AUTHORITY, "x"), (HOST, "y")]),
        (POST, "/accounts", &[(AUTHORITY, "x")]),
        (POST, "/api.v2.Unknown/Nothing", &[(AUTHORITY, "x"), GRPC]),
        (POST, "/api.v2.Query/ListAccounts", &[(AUTHORITY, "x"), GRPC, (b"\x00\x0cgrpc-timeout", "0n")]),
        (GET, CACHED, &[(AUTHORITY, "x")]),
    ] {
        let mut block = get_request(path, fields);
        block[0] = method;
        let head = Frame { flags: END_HEADERS, ..Frame::request(stream, &block) };
        client.send(&head).await.expect("the edge reads");
        next(&mut client, HEADERS).await;
        let end = Frame { kind: DATA, flags: END_STREAM, stream, payload: vec![0; 10] };
        client.send(&end).await.expect("the edge reads");
        request(&mut client, stream + 2, &valid_request()).await;
        loop {
            let frame = timeout(TIME_LIMIT, client.frame()).await.expect("the edge answers in time");
            let frame = frame.expect("the connection is kept");
            assert!(frame.kind != RST_STREAM, "{path}: {frame:?}");
            if (frame.kind, frame.stream) == (HEADERS, stream + 2) {
                break;
            }
        }
        stream += 4;
    }
}

#[tokio::test]
async fn a_client_that_keeps_resetting_its_streams_is_disconnected() {
    let mesh = MeshClient::fixture().await;
    let mut client = connect(mesh.url()).await;
    let goodbye = timeout(TIME_LIMIT, client.cancel_requests(10_000, &valid_request())).await;
    let goodbye = goodbye.expect("the edge closes in time").expect("the edge says why");
    let error = u32::from_be_bytes(goodbye.payload[4..8].try_into().expect("a goodbye has an error code"));
    assert_eq!(error, 11, "enhance your calm: {goodbye:?}");
}

#[tokio::test]
async fn a_client_may_cancel_all_that_it_has_open_together() {
    let mut client = connect(MeshClient::fixture().await.url()).await;
    let answer = timeout(TIME_LIMIT, client.cancel_requests(120, &valid_request())).await;
    assert_eq!(answer.expect("an answer in time").expect("an open connection").kind, HEADERS);
}

#[test]
fn an_http_2_connection_gets_goaway_at_a_stop_and_pending_requests_are_answered() {
    fixture::exclusively(async |_, mesh| {
        let mut client = connect(&mesh.url()).await;
        request(&mut client, 1, &valid_request()).await;
        next(&mut client, HEADERS).await;
        let (status, ()) = tokio::join!(mesh.service("edge").stop(), async {
            let goaway = timeout(Duration::from_secs(1), client.next(GOAWAY)).await;
            goaway.expect("it gets GOAWAY at once").expect("the connection is not closed before");
            request(&mut client, 3, &valid_request()).await;
            let answer = next(&mut client, HEADERS).await;
            assert_eq!(answer.stream, 3);
            while timeout(TIME_LIMIT, client.frame()).await.expect("the edge closes in time").is_ok() {}
        });
        assert!(status.success(), "{status}");
    });
}
