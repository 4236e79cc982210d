//! The gRPC protocol over HTTP/2: media type, message framing, `grpc-timeout`, and the services that every
//! gRPC server has.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use hyper::body::Frame;
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use tonic::Status;

use crate::decode::{body::too_large, quote};

const GRPC_STATUS: &str = "grpc-status";
pub(super) const GRPC_ENCODING: &str = "grpc-encoding";
pub(super) const GRPC_ACCEPT_ENCODING: &str = "grpc-accept-encoding";
/// The only encoding of messages.
pub(super) const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The health service.
pub(super) const HEALTH: &str = "grpc.health.v1.Health";

pub(super) const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
pub(super) const OLDER_REFLECTION: &str = "grpc.reflection.v1alpha.ServerReflection";

/// The standard service of a path, if it is one.
pub(crate) fn standard_service(path: &str) -> Option<&'static str> {
    let service = path.split('/').nth(1)?;
    let all = [HEALTH, REFLECTION, OLDER_REFLECTION];
    all.into_iter().find(|standard| *standard == service)
}

/// Length of a message's prefix: a flag and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// Longest data that the HTTP/2 library copies together with the next frame. Longer data is written separately, and
/// the status with a second system call, which wakes the client twice.
const SHORT_FRAME: usize = 255;

/// Longest reply that is sent in frames of [`SHORT_FRAME`] bytes.
const SHORT_MESSAGE: usize = 2048;

/// The one message of a call's body. `encoding`: how a compressed message of the call is compressed.
///
/// # Errors
/// When it is malformed, compressed or longer than `max`.
pub(super) fn unframe(mut body: Bytes, max: usize, encoding: Option<&HeaderValue>) -> Result<Bytes, Problem> {
    if body.len() < PREFIX_BYTES {
        return Err(Problem::invalid(MALFORMED, "a call brings one message"));
    }
    let (flag, length) = (body.get_u8(), body.get_u32());
    if flag == 1 && encoding.is_some_and(|encoding| encoding != IDENTITY) {
        return Err(Problem::new(Code::Unimplemented, NOT_MAPPED, "a compressed message is not taken"));
    }
    if flag != 0 {
        // The status that the protocol requires without an announced compression.
        let reason = "the message says that it is compressed, and the call does not say how";
        return Err(Problem::new(Code::Internal, MALFORMED, reason));
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > max {
        return Err(too_large(max).problem);
    }
    match body.len() {
        actual if actual == length => Ok(body),
        actual if actual < length => Err(Problem::invalid(MALFORMED, "the message breaks off")),
        _ => Err(Problem::invalid(MALFORMED, "a call brings one message")),
    }
}

/// The frames of one message, which is encoded already and may be in parts.
pub(super) fn message(parts: &[Bytes]) -> Vec<Frame<Bytes>> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let is_short = length <= SHORT_MESSAGE;
    let mut start = BytesMut::with_capacity(if is_short { PREFIX_BYTES + length } else { PREFIX_BYTES });
    start.put_u8(0);
    start.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    let mut frames = Vec::new();
    if is_short {
        parts.iter().for_each(|part| start.put_slice(part));
        while start.len() > SHORT_FRAME {
            frames.push(Frame::data(start.split_to(SHORT_FRAME).freeze()));
        }
    }
    frames.push(Frame::data(start.freeze()));
    if !is_short {
        frames.extend(parts.iter().cloned().map(Frame::data));
    }
    frames
}

/// The code of a status in headers or trailers, if they have one.
pub(crate) fn status_code(headers: &HeaderMap) -> Option<u8> {
    headers.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// The frame of a status, the last one of a body.
pub(super) fn trailers(status: &Status) -> Frame<Bytes> {
    let mut headers = HeaderMap::new();
    // Writes the code first; details that are no header would be left out.
    let _ = status.add_header(&mut headers);
    Frame::trailers(headers)
}

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// Most digits that the protocol allows.
const MAX_DIGITS: usize = 8;

/// The timeout of a call, if the client set one.
///
/// # Errors
/// When it is malformed.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let malformed = || Problem::invalid(MALFORMED, "grpc-timeout is malformed").with_inner(quote(text));
    parse_timeout(text).map(Some).ok_or_else(malformed)
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_valid =
        (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_valid)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_one_message() {
        let gzip = HeaderValue::from_static("gzip");
        let read = |bytes: &'static [u8]| unframe(Bytes::from_static(bytes), 3, None);
        let read_gzip = |bytes: &'static [u8]| unframe(Bytes::from_static(bytes), 3, Some(&gzip));
        assert_eq!(read(&[0, 0, 0, 0, 0]).unwrap(), Bytes::new());
        assert_eq!(read(&[0, 0, 0, 0, 3, 1, 2, 3]).unwrap(), [1, 2, 3].as_slice());
        for (wrong, code) in [
            (&[][..], Code::InvalidArgument),
            (&[0, 0, 0, 0], Code::InvalidArgument),
            (&[0, 0, 0, 0, 3, 1, 2], Code::InvalidArgument),
            (&[0, 0, 0, 0, 1, 1, 2], Code::InvalidArgument),
            (&[0, 0, 0, 0, 4, 1, 2, 3, 4], Code::ResourceExhausted),
            (&[0, 0xff, 0xff, 0xff, 0xff], Code::ResourceExhausted),
            (&[1, 0, 0, 0, 1, 1], Code::Internal),
        ] {
            assert_eq!(read(wrong).unwrap_err().code, code, "{wrong:?}");
        }
        assert_eq!(
            read_gzip(&[0, 0, 0, 0, 1, 1]).unwrap(),
            [1].as_slice(),
            "each message says whether it is compressed"
        );
        assert_eq!(read_gzip(&[1, 0, 0, 0, 1, 1]).unwrap_err().code, Code::Unimplemented);
    }

    #[test]
    fn a_message_is_in_short_frames_when_it_is_short() {
        for length in [0, 1, 250, 251, 600, SHORT_MESSAGE, SHORT_MESSAGE + 1] {
            let whole: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (one, other) = whole.split_at(length / 3);
            let frames = message(&[one, other].map(Bytes::copy_from_slice));
            let data: Vec<Bytes> = frames.into_iter().map(|frame| frame.into_data().unwrap()).collect();
            let is_short = |frame: &Bytes| frame.len() <= SHORT_FRAME;
            assert!(length > SHORT_MESSAGE || data.iter().all(is_short), "{length}");
            assert_eq!(unframe(data.concat().into(), length, None).unwrap(), whole, "{length}");
        }
    }

    #[test]
    fn a_timeout_has_one_of_six_units() {
        for (text, expected) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse_timeout(text), Some(expected), "{text}");
        }
        for wrong in ["", "S", "1", "-1S", "+1S", "1.5S", "1s", "123456789m", "1 S", "1é"] {
            assert_eq!(parse_timeout(wrong), None, "{wrong}");
        }
    }
}
