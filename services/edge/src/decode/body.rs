//! Reading the body of a request, within its limits of size and time.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING},
};
use mesh_chassis::list_header::{lines, pieces};
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use tokio::time::{Instant, timeout_at};

use crate::{
    admission::head::HttpError,
    ask::answer_memory::{Held, UNCOUNTED},
    config::Limits,
};

/// Most bytes of a discarded body that are read, in multiples of the greatest body.
const MAX_DISCARDED: usize = 8;

/// A stream of body bytes.
pub(crate) type Body<E> = Pin<Box<dyn Stream<Item = Result<Bytes, E>> + Send>>;

/// Reads the whole body of an HTTP request. A long one is counted by `hold`.
///
/// # Errors
/// 400 for a compressed or malformed body, 413 for one that is too large, 408 for one that is too slow; what `hold`
/// returns.
pub(crate) async fn read_whole<E>(
    body: &mut Body<E>,
    headers: &HeaderMap,
    limits: &Limits,
    hold: impl Fn(usize) -> Result<Option<Held>, Problem>,
) -> Result<(Bytes, Option<Held>), HttpError> {
    check_announced(headers, limits)?;
    let mut codings = lines(headers, &CONTENT_ENCODING).flat_map(|line| pieces(line, b','));
    let is_plain = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
    if !codings.all(|coding| is_plain(coding.trim_ascii())) {
        return Err(Problem::invalid(MALFORMED, "a compressed body is not taken").into());
    }
    collect(body, limits.body_bytes, limits, hold).await
}

/// Reads a body of at most `max` bytes. A long one is counted by `hold`, as the longest, until its count is dropped.
///
/// # Errors
/// As [`read_whole`].
pub(crate) async fn collect<E>(
    body: &mut Body<E>,
    max: usize,
    limits: &Limits,
    hold: impl Fn(usize) -> Result<Option<Held>, Problem>,
) -> Result<(Bytes, Option<Held>), HttpError> {
    let (mut whole, mut held) = (BytesMut::new(), None);
    let collected = read(body, max, limits, |piece| {
        if held.is_none() && whole.len() + piece.len() > UNCOUNTED {
            held = hold(max)?;
        }
        whole.extend_from_slice(&piece);
        Ok(())
    });
    collected.await?;
    Ok((whole.freeze(), held))
}

/// Reads the body of a request that needs none to its end.
///
/// # Errors
/// As [`read_whole`], but for a compressed body.
pub(crate) async fn drain<E>(
    body: &mut Body<E>,
    headers: &HeaderMap,
    limits: &Limits,
) -> Result<(), HttpError> {
    if !is_sending(headers) {
        return Ok(());
    }
    check_announced(headers, limits)?;
    read(body, limits.body_bytes, limits, |_| Ok(())).await
}

/// Refuses a body that is too large by its `Content-Length`.
///
/// # Errors
/// 413.
pub(crate) fn check_announced(headers: &HeaderMap, limits: &Limits) -> Result<(), HttpError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    match announced.is_some_and(|length| length > limits.body_bytes) {
        true => Err(too_large(limits.body_bytes)),
        false => Ok(()),
    }
}

/// Whether a client sends a body without waiting for `100 Continue`.
pub(crate) fn is_sending(headers: &HeaderMap) -> bool {
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    has_body && !headers.contains_key(EXPECT)
}

/// Reads a body of at most `max` bytes to its end.
///
/// # Errors
/// 413 for a body that is too large, 408 for one that is too slow, 400 for one that breaks off.
async fn read<E>(
    body: &mut Body<E>,
    max: usize,
    limits: &Limits,
    mut take: impl FnMut(Bytes) -> Result<(), Problem>,
) -> Result<(), HttpError> {
    let deadline = Instant::now() + limits.body_time;
    let mut left = max;
    loop {
        let until = deadline.min(Instant::now() + limits.body_idle);
        match timeout_at(until, body.next()).await {
            Ok(Some(Ok(piece))) if piece.len() > left => return Err(too_large(limits.body_bytes)),
            Ok(Some(Ok(piece))) => {
                left -= piece.len();
                take(piece)?;
            }
            Ok(Some(Err(_))) => return Err(Problem::invalid(MALFORMED, "the body breaks off").into()),
            Ok(None) => return Ok(()),
            Err(_) => {
                let problem = Problem::deadline_exceeded("the body did not come in time");
                return Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, problem));
            }
        }
    }
}

/// The refusal of a body of more than `max` bytes.
pub(crate) fn too_large(max: usize) -> HttpError {
    let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the body is too large");
    HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, problem.with_inner(format!("at most {max} bytes")))
}

/// Reads on after the answer: closing a connection while its client still sends resets it, and the answer is
/// lost.
pub(crate) async fn discard<E>(mut body: Body<E>, limits: Limits) {
    let most = limits.body_bytes.saturating_mul(MAX_DISCARDED);
    let _ = read(&mut body, most, &limits, |_| Ok(())).await;
}
