//! Reading the body of a request, within its limits of size and time.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use tokio::time::{Instant, timeout_at};

use crate::{config::Limits, limits::Refusal};

/// How much of a body that nobody wants is read all the same, in greatest bodies.
const DISCARDED_AT_MOST: usize = 8;

/// A body as it comes.
pub(crate) type Body<E> = Pin<Box<dyn Stream<Item = Result<Bytes, E>> + Send>>;

/// Reads a body of at most so many bytes to its end.
pub(crate) async fn read<E>(
    body: &mut Body<E>,
    at_most: usize,
    limits: &Limits,
    mut take: impl FnMut(Bytes),
) -> Result<(), Refusal> {
    let deadline = Instant::now() + limits.body_time;
    let mut left = at_most;
    loop {
        let patience = deadline.min(Instant::now() + limits.body_idle);
        match timeout_at(patience, body.next()).await {
            Ok(Some(Ok(piece))) if piece.len() > left => return Err(too_large(limits.body_bytes)),
            Ok(Some(Ok(piece))) => {
                left -= piece.len();
                take(piece);
            }
            Ok(Some(Err(_))) => return Err(Problem::invalid(MALFORMED, "the body breaks off").into()),
            Ok(None) => return Ok(()),
            Err(_) => {
                return Err(Refusal {
                    status: StatusCode::REQUEST_TIMEOUT,
                    problem: Problem::deadline_exceeded("the body did not come in time"),
                    allow: None,
                });
            }
        }
    }
}

/// The refusal of a body of more bytes than these.
pub(crate) fn too_large(at_most: usize) -> Refusal {
    Refusal {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        problem: Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the body is too large")
            .with_inner(format!("at most {at_most} bytes")),
        allow: None,
    }
}

/// Reads what is left of a body that is answered already. Closing a connection while its client still sends
/// resets it, and the answer is lost with it.
pub(crate) async fn discard<E>(mut body: Body<E>, limits: Limits) {
    let deadline = Instant::now() + limits.body_time;
    let mut left = limits.body_bytes.saturating_mul(DISCARDED_AT_MOST);
    loop {
        let patience = deadline.min(Instant::now() + limits.body_idle);
        match timeout_at(patience, body.next()).await {
            Ok(Some(Ok(piece))) if piece.len() <= left => left -= piece.len(),
            _ => return,
        }
    }
}
