//! Frames of a WebSocket that no proper client sends, byte by byte: what RFC 6455 forbids closes with its code.

use mesh_testbed::http1::Connection;
use mesh_tests::{HANDSHAKE, MeshClient, raw};

/// A masked frame: the first byte, and the payload.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [1, 2, 3, 4];
    let mut bytes = vec![first];
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => bytes.push(0x80 | length),
        _ => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const CLOSE: u8 = 0x88;

async fn open(client: &MeshClient) -> Connection {
    let mut connection = raw::begin(client.url(), HANDSHAKE).await;
    assert_eq!(connection.head().await.unwrap().unwrap().0.status, 101);
    connection
}

/// All bytes of the edge in answer to these, until it closes.
async fn answer_to(client: &MeshClient, bytes: &[u8]) -> Vec<u8> {
    let mut connection = open(client).await;
    connection.send(bytes).await.unwrap();
    raw::rest(&mut connection).await
}

/// The code of the close frame that is all that the edge sends.
#[track_caller]
fn code(answer: &[u8]) -> u16 {
    let [CLOSE, length, high, low, reason @ ..] = answer else { panic!("{answer:?}") };
    assert_eq!(usize::from(*length), 2 + reason.len(), "{answer:?}");
    u16::from_be_bytes([*high, *low])
}

#[tokio::test]
async fn what_the_protocol_forbids_closes_with_its_code() {
    let client = MeshClient::fixture().await;
    let long = frame(PING, &[0; 126]);
    for (bytes, expected) in [
        (b"\x81\x02{}".to_vec(), 1002), // unmasked
        (frame(0xC1, b"{}"), 1002),     // compressed, which was not agreed on
        (frame(0xA1, b"{}"), 1002),
        (frame(0x91, b"{}"), 1002),
        (frame(0x83, b"{}"), 1002), // unknown kinds
        (frame(0x8B, b""), 1002),
        (frame(0x80, b"{}"), 1002), // a continuation of nothing
        ([frame(0x01, b"{"), frame(TEXT, b"}")].concat(), 1002), // a text within a text
        (frame(0x09, b""), 1002),   // a ping in fragments
        (long, 1002),
        (frame(CLOSE, b"\x03"), 1002),
        (frame(CLOSE, b"\x03\xe7"), 1002), // 999
        (frame(CLOSE, b"\x03\xed"), 1002), // 1005
        (frame(TEXT, b"\xff"), 1007),
        ([frame(0x01, b"\xc3"), frame(0x80, b"(")].concat(), 1007),
        (frame(CLOSE, b"\x03\xe8\xff"), 1007),
        (frame(TEXT, &[b' '; (16 << 10) + 1]), 1009),
        ([frame(0x01, &[b' '; 16 << 10]), frame(0x80, b" ")].concat(), 1009),
        (b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0".to_vec(), 1009),
    ] {
        let answer = answer_to(&client, &bytes).await;
        assert_eq!(code(&answer), expected, "{}", bytes[..bytes.len().min(20)].escape_ascii());
    }
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    let client = MeshClient::fixture().await;
    assert_eq!(answer_to(&client, &frame(CLOSE, b"")).await, [CLOSE, 0]);
    assert_eq!(answer_to(&client, &frame(CLOSE, b"\x03\xe8bye")).await, b"\x88\x05\x03\xe8bye");
    // Nothing after it is read.
    let bytes = [frame(CLOSE, b"\x0f\xa0"), frame(TEXT, b"{}")].concat();
    assert_eq!(answer_to(&client, &bytes).await, b"\x88\x02\x0f\xa0");
}

#[tokio::test]
async fn a_text_comes_in_fragments_with_pings_between_and_byte_by_byte() {
    let client = MeshClient::fixture().await;
    let text = r#"{"id":"é","unwatch":true}"#.as_bytes();
    // Within a character.
    let (one, two) = text.split_at(8);
    let bytes = [
        frame(0x01, one),
        frame(PING, b"1"),
        frame(0x00, b""),
        frame(PING, b"2"),
        frame(0x80, two),
        frame(0x8A, b"an answer to nothing"),
        frame(CLOSE, b""),
    ]
    .concat();
    for size in [1, 7, bytes.len()] {
        let mut connection = open(&client).await;
        for piece in bytes.chunks(size) {
            connection.send(piece).await.unwrap();
        }
        let answer = raw::rest(&mut connection).await;
        let has = |part: &[u8]| answer.windows(part.len()).any(|window| window == part);
        // A later ping may replace an earlier one that is not answered yet (RFC 6455, 5.5.3).
        assert!(has(b"\x8a\x012") && has(b"\"error\":{\"code\":3"), "{}", answer.escape_ascii());
        assert!(answer.ends_with(&[CLOSE, 0]), "{}", answer.escape_ascii());
    }
}
