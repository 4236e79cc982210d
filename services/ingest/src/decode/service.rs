//! Decoders of users: NATS micro services on `mesh.decode.Block` (N6).

use std::{
    io::{Read, Write},
    time::Duration,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use mesh_bus::{Bus, ServiceCallError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DecodeError, rows::StatedRow};
use crate::{
    block::{FetchedBlock, Row},
    node::MAX_REPLY_BYTES,
};

/// The service and the operation that make up the subject.
const SERVICE: [&str; 2] = ["decode", "Block"];

/// A decoder without a reply for this long is asked again.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Most characters of a decoder's error that are reported.
const MAX_ERROR: usize = 1000;

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    chain_id: &'a str,
    height: u64,
    time: &'a str,
    hash: &'a str,
    block: &'a RawValue,
    results: &'a RawValue,
}

#[derive(Deserialize)]
struct Reply {
    rows: Vec<StatedRow>,
}

/// The rows of a block, from any replica of the decoder.
pub(super) async fn decode(block: &FetchedBlock, bus: &Bus) -> Result<Vec<Row>, DecodeError> {
    let request = request(block).map_err(|error| DecodeError::Unreadable(error.to_string()))?;
    let reply = bus.call_service(SERVICE, request, REPLY_TIMEOUT).await.map_err(|error| match error {
        ServiceCallError::TooLarge { bytes, most } => DecodeError::TooLarge { bytes, most },
        ServiceCallError::Failed { code, text } => DecodeError::Failed(one_line(&code, &text)),
        error @ ServiceCallError::Late(_) => DecodeError::Late(error.to_string()),
        error => DecodeError::Unavailable(error.to_string()),
    })?;
    read(&reply)
}

/// A decoder's error, for the log and for terminals.
fn one_line(code: &str, text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    format!("{code} {text}").chars().take(MAX_ERROR).map(shown).collect()
}

fn request(block: &FetchedBlock) -> std::io::Result<Vec<u8>> {
    let FetchedBlock { chain_id, height, time_text, hash, block, results, .. } = block;
    let request = Request { chain_id, height: *height, time: time_text, hash, block, results };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&serde_json::to_vec(&request)?)?;
    gzip.finish()
}

fn read(reply: &[u8]) -> Result<Vec<Row>, DecodeError> {
    let failed = |error: &dyn std::error::Error| DecodeError::Failed(format!("its reply: {error}"));
    let plain;
    let reply = match reply.starts_with(&GZIP) {
        false => reply,
        true => {
            let mut text = Vec::new();
            let most = MAX_REPLY_BYTES as u64;
            let read = GzDecoder::new(reply).take(most + 1).read_to_end(&mut text);
            read.map_err(|error| failed(&error))?;
            if text.len() as u64 > most {
                return Err(DecodeError::ReplyTooLarge);
            }
            plain = text;
            &plain
        }
    };
    let Reply { rows } = serde_json::from_slice(reply).map_err(|error| failed(&error))?;
    rows.into_iter().map(|row| row.read().map_err(DecodeError::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Cell;

    const TWICE: &[u8] = br#"{"rows":[{"table":"epochs","values":{"id":"1","id":"1"}}]}"#;

    #[test]
    fn a_reply_is_plain_or_gzip_and_states_tables_and_columns_that_exist() {
        let text = br#"{"rows":[{"table":"trades","values":{"price":"100","reference":null}}]}"#;
        assert!(matches!(read(text), Err(DecodeError::Row(_))), "trades have no reference");
        let text = br#"{"rows":[{"table":"orders","values":{"price":"100","reference":null}}]}"#;
        let plain = read(text).unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        assert_eq!(read(&gzip.finish().unwrap()).unwrap(), plain);
        let digits = br#"{"rows":[{"table":"markets","values":{"fees":{"a":1.00000000000000000001}}}]}"#;
        let fees = Cell::Text(r#"{"a":1.00000000000000000001}"#.to_owned());
        assert!(read(digits).unwrap()[0].cells.contains(&fees), "{:?}", read(digits));
        for wrong in [&b"{}"[..], b"", b"\x1f\x8bx", br#"{"rows":[{"table":"blocks"}]}"#, TWICE] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        let mut endless = GzEncoder::new(Vec::new(), Compression::fast());
        endless.write_all(&vec![b' '; MAX_REPLY_BYTES + 1]).unwrap();
        assert!(matches!(read(&endless.finish().unwrap()), Err(DecodeError::ReplyTooLarge)));
    }

    #[test]
    fn errors_of_decoders_are_short_and_without_control_characters() {
        assert_eq!(one_line("500", "a\x1b[31mb\n"), "500 a [31mb ");
        assert_eq!(one_line("500", &"y".repeat(5000)).len(), MAX_ERROR);
    }
}
