//! A gateway whose answers are spoilt on the way.

use std::collections::VecDeque;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::stub::{Reply, StubGateway};

/// The fault of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// The same, and its entity tag is changed.
    Retagged(usize),
    /// The connection stalls after so many bytes of the body and stays open.
    Stall(usize),
    /// The last byte of the body has a flipped bit.
    Flip,
    /// The answer is 503.
    Unavailable,
    /// The connection is closed without an answer.
    Closed,
}

/// Spoils the answers of a gateway one after the other; those after the last fault are left as they are.
pub(crate) async fn faulty(url: &str, faults: &[Fault]) -> StubGateway {
    let real = url.trim_start_matches("http://").to_owned();
    let mut faults: VecDeque<Fault> = faults.iter().copied().collect();
    StubGateway::start(move |head| answer(head, real.clone(), faults.pop_front().unwrap_or(Fault::None)))
        .await
}

async fn answer(head: String, real: String, fault: Fault) -> Reply {
    match fault {
        Fault::Closed => return Reply { bytes: Vec::new(), stalls: false },
        Fault::Unavailable => {
            let gone = "HTTP/1.1 503 X\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            return Reply { bytes: gone.into(), stalls: false };
        }
        _ => {}
    }
    let mut server = TcpStream::connect(real).await.unwrap();
    let (line, fields) = head.split_once("\r\n").unwrap();
    server.write_all(format!("{line}\r\nconnection: close\r\n{fields}").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).await.unwrap();
    let after = |bytes: &[u8], mark: &[u8]| {
        bytes.windows(mark.len()).position(|found| found == mark).unwrap() + mark.len()
    };
    let body = after(&bytes, b"\r\n\r\n");
    if let Fault::Retagged(_) = fault {
        // Changes one digit of the tag.
        let tag = after(&bytes, b"etag: \"");
        bytes[tag] = if bytes[tag] == b'0' { b'1' } else { b'0' };
    }
    match fault {
        Fault::Cut(kept) | Fault::Retagged(kept) | Fault::Stall(kept) => bytes.truncate(body + kept),
        Fault::Flip => *bytes.last_mut().unwrap() ^= 1,
        Fault::None | Fault::Unavailable | Fault::Closed => {}
    }
    Reply { bytes, stalls: matches!(fault, Fault::Stall(_)) }
}
