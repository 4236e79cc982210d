//! HTTP/2 frame by frame: the limits of a connection, and the GOAWAY of a stop.

use std::{collections::BTreeMap, time::Duration};

use mesh_testbed::Mesh;
use mesh_tests::{client::MeshClient, fixture};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::http_hardening::TIME_LIMIT;

/// Frame types.
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// Flags: END_STREAM with END_HEADERS; ACK.
const END_STREAM_AND_HEADERS: u8 = 5;
const ACK: u8 = 1;

/// `GET http://x/`, by HPACK's static table.
const GET: &[u8] = b"\x82\x86\x84\x01\x01x";

/// An HTTP/2 client connection.
struct Client(TcpStream);

/// A frame.
#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Client {
    async fn connect(url: &str) -> Self {
        let mut stream =
            TcpStream::connect(url.trim_start_matches("http://")).await.expect("the edge listens");
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("the edge reads");
        let mut client = Self(stream);
        client.send(SETTINGS, 0, 0, b"").await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).expect("a short frame").to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend_from_slice(payload);
        // The edge may have closed the connection already.
        let _ = self.0.write_all(&frame).await;
    }

    /// The next frame, or `None` when the edge has closed.
    async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        let read = timeout(TIME_LIMIT, self.0.read_exact(&mut head)).await.expect("the edge says something");
        read.ok()?;
        let mut payload =
            vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
        self.0.read_exact(&mut payload).await.expect("a frame comes whole");
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of a type; answers pings and skips other frames.
    async fn next(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if frame.kind == PING && frame.flags & ACK == 0 {
                self.send(PING, ACK, 0, &frame.payload).await;
            }
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }
}

#[tokio::test]
async fn an_http_2_connection_announces_its_limits_and_answers() {
    let mesh = MeshClient::fixture().await;
    let mut client = Client::connect(mesh.url()).await;
    let settings = client.next(SETTINGS).await.expect("the edge says its settings");
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
        client.send(HEADERS, END_STREAM_AND_HEADERS, stream, GET).await;
        let answer = client.next(HEADERS).await.expect("the edge answers");
        assert_eq!(answer.stream, stream);
    }
}

/// A header block of `GET` and `http` with these fields: names, or indexes into HPACK's static table, and
/// values.
fn fields(path: &str, fields: &[(&[u8], &str)]) -> Vec<u8> {
    let mut block = b"\x82\x86".to_vec();
    for (name, value) in [(&b"\x04"[..], path)].iter().chain(fields) {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).expect("a short value"));
        block.extend_from_slice(value.as_bytes());
    }
    block
}

#[tokio::test]
async fn an_http_2_request_with_an_invalid_host_is_refused_and_others_on_its_connection_answered() {
    const AUTHORITY: &[u8] = b"\x01";
    const HOST: &[u8] = b"\x00\x04host";
    const GRPC: (&[u8], &str) = (b"\x00\x0ccontent-type", "application/grpc");
    let mesh = MeshClient::fixture().await;
    let mut client = Client::connect(mesh.url()).await;
    let mut stream = 1;
    for authority in ["u@x", "u:p@x", "x:99999", "x:80x", ":80", "a b", "a/b@c"] {
        let grpc = [0x83, 0x86, 0x04, 1, b'/'].to_vec();
        let called = [grpc, fields("", &[(AUTHORITY, authority), GRPC])[4..].to_vec()].concat();
        for block in [
            fields("/health", &[(AUTHORITY, authority)]),
            fields("/health", &[(HOST, authority)]),
            fields("/health", &[(AUTHORITY, "x"), (HOST, authority)]),
            called,
        ] {
            client.send(HEADERS, END_STREAM_AND_HEADERS, stream, &block).await;
            let refused = loop {
                let frame = client.frame().await.expect("the connection is kept");
                if frame.stream == stream {
                    break frame;
                }
            };
            // An invalid authority is refused by the HTTP/2 library.
            let is_reset = refused.kind == RST_STREAM && refused.payload == [0, 0, 0, 1];
            let is_refused = refused.kind == HEADERS && is_status_400(&refused.payload);
            assert!(is_reset || is_refused, "{authority}: {refused:?}");
            stream += 2;
        }
    }
    let sound = [
        fields("/health", &[(AUTHORITY, "x:80")]),
        fields("/health", &[(AUTHORITY, "[::1]:80"), (HOST, "[::1]:80")]),
        fields("/health", &[(HOST, "x")]),
    ];
    for block in sound {
        client.send(HEADERS, END_STREAM_AND_HEADERS, stream, &block).await;
        let answer = client.next(HEADERS).await.expect("the edge answers");
        // `:status: 200` in HPACK's static table.
        assert_eq!((answer.stream, answer.payload[0]), (stream, 0x88), "{answer:?}");
        stream += 2;
    }
}

/// Whether a header block begins with `:status: 400` of HPACK's static table. Such a refusal has no body.
fn is_status_400(block: &[u8]) -> bool {
    block.first() == Some(&0x8c)
}

#[tokio::test]
async fn a_client_that_keeps_resetting_its_streams_is_disconnected() {
    let mesh = MeshClient::fixture().await;
    let mut client = Client::connect(mesh.url()).await;
    let mut burst = Vec::new();
    for stream in (1..20_001_u32).step_by(2) {
        for (kind, flags, payload) in
            [(HEADERS, END_STREAM_AND_HEADERS, GET), (RST_STREAM, 0, &[0, 0, 0, 8][..])]
        {
            burst.extend([0, 0, u8::try_from(payload.len()).expect("a short frame"), kind, flags]);
            burst.extend(stream.to_be_bytes());
            burst.extend_from_slice(payload);
        }
    }
    // The edge may close before it has read everything.
    let _ = client.0.write_all(&burst).await;
    let goodbye = client.next(GOAWAY).await.expect("the edge says why");
    let error = u32::from_be_bytes(goodbye.payload[4..8].try_into().expect("a goodbye has an error code"));
    assert_eq!(error, 11, "enhance your calm: {goodbye:?}");
}

#[tokio::test]
async fn an_http_2_connection_gets_goaway_at_a_stop_and_pending_requests_are_answered() {
    let database = fixture::database().await;
    let mesh = Mesh::start(&database).await;
    let mut client = Client::connect(&mesh.url()).await;
    client.send(HEADERS, END_STREAM_AND_HEADERS, 1, GET).await;
    client.next(HEADERS).await.expect("the edge answers");
    let (status, ()) = tokio::join!(mesh.service("edge").stop(), async {
        let goaway =
            timeout(Duration::from_secs(1), client.next(GOAWAY)).await.expect("it hears of it at once");
        assert!(goaway.is_some());
        client.send(HEADERS, END_STREAM_AND_HEADERS, 3, GET).await;
        let answer = client.next(HEADERS).await.expect("what crossed the goodbye is answered");
        assert_eq!(answer.stream, 3);
        while client.frame().await.is_some() {}
    });
    assert!(status.success(), "{status}");
}
