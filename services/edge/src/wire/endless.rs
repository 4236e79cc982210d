//! Answers without an end over HTTP/1, written to the socket itself. A watch is the last answer of its
//! connection and stays open for hours, mostly silent. hyper would keep two buffers for it, which is more than
//! all that a watch needs; so it gives the connection back, and the end of the connection is that of the
//! answer (RFC 9112, 6.3).

use std::{
    error::Error,
    fmt,
    io::{self, IoSlice},
};

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http::{Response, response::Parts};
use http_body_util::BodyExt;
use hyper::body::Body;
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Marks an answer without an end, as an extension of its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

impl Endless {
    /// Whether an answer has no end.
    pub(super) fn is<B: Body>(answer: &Response<B>) -> bool {
        // The body of an answer to HEAD is at its end.
        answer.extensions().get::<Self>().is_some() && !answer.body().is_end_stream()
    }
}

/// The failure of a hyper service that ends hyper's hold on the connection: the answer is written without it.
pub(super) struct WithoutHyper<A>(Mutex<Option<A>>);

impl<A: Send + 'static> WithoutHyper<A> {
    pub(super) fn new(answer: A) -> Self {
        Self(Mutex::new(Some(answer)))
    }

    /// The answer, if this is why hyper's connection ended.
    pub(super) fn take(error: &(dyn Error + 'static)) -> Option<A> {
        error.downcast_ref::<hyper::Error>()?.source()?.downcast_ref::<Self>()?.0.lock().take()
    }
}

impl<A> fmt::Debug for WithoutHyper<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WithoutHyper")
    }
}

impl<A> fmt::Display for WithoutHyper<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the answer is written without hyper")
    }
}

impl<A> Error for WithoutHyper<A> {}

/// Most pieces of an answer that leave in one write.
const MAX_PIECES: usize = 8;

/// Writes an answer until it ends or the client leaves, and then closes the connection.
///
/// # Errors
/// When the connection breaks.
pub(super) async fn write_answer<S, B>(mut socket: S, answer: Response<B>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Body<Data = Bytes> + Unpin,
{
    let (mut pieces, mut body) = {
        let (head, body) = answer.into_parts();
        (vec![encode_head(&head)], body)
    };
    let mut is_silent = true;
    loop {
        let mut unread = [0; 64];
        let has_ended = tokio::select! {
            biased;
            has_ended = take_ready(&mut body, &mut pieces) => has_ended,
            read = socket.read(&mut unread), if is_silent => match read? {
                0 => return Ok(()),
                // What a client sends behind its last request is not read.
                _ => {
                    is_silent = false;
                    continue;
                }
            },
        };
        write_all(&mut socket, &mut pieces).await?;
        if has_ended {
            return socket.shutdown().await;
        }
    }
}

/// Takes the next pieces of a body once there are any. Returns whether it has ended.
async fn take_ready<B: Body<Data = Bytes> + Unpin>(body: &mut B, pieces: &mut Vec<Bytes>) -> bool {
    let mut next = body.frame().await;
    loop {
        let Some(Ok(frame)) = next else { return true };
        pieces.extend(frame.into_data().ok().filter(|data| !data.is_empty()));
        if pieces.len() == MAX_PIECES {
            return false;
        }
        let Some(ready) = body.frame().now_or_never() else { return false };
        next = ready;
    }
}

/// Writes all pieces, and leaves none.
async fn write_all<S: AsyncWrite + Unpin>(socket: &mut S, pieces: &mut Vec<Bytes>) -> io::Result<()> {
    if let [only] = &pieces[..] {
        socket.write_all(only).await?;
        pieces.clear();
    }
    while !pieces.is_empty() {
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut written = socket.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        pieces.retain_mut(|piece| {
            let part = written.min(piece.len());
            written -= part;
            piece.advance(part);
            !piece.is_empty()
        });
    }
    Ok(())
}

/// The status line and the headers of an answer.
fn encode_head(head: &Parts) -> Bytes {
    let reason = head.status.canonical_reason().unwrap_or_default();
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now()).unwrap_or_default();
    let first = format!("HTTP/1.1 {} {reason}\r\ndate: {date}\r\n", head.status.as_u16());
    let mut bytes = first.into_bytes();
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}
