//! Endless HTTP/1 responses (watches), written to the socket without hyper. A watch is the last response of its
//! connection and stays open for hours, mostly idle; hyper's two buffers would take more memory than the watch.
//! The response is chunked, so that a client can distinguish its end from a lost connection; over HTTP/1.0 the
//! connection's close is its end (RFC 9112, 6.3).

use std::{
    io::{self, IoSlice},
    thread,
};

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http::{Response, Version, response::Parts};
use http_body_util::BodyExt;
use hyper::body::Body;
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Marks an endless response, as an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

impl Endless {
    /// Whether a response is endless.
    pub(super) fn is<B: Body>(answer: &Response<B>) -> bool {
        // A response to HEAD has an ended body.
        answer.extensions().get::<Self>().is_some() && !answer.body().is_end_stream()
    }
}

/// Greatest number of pieces of a response in one write.
const MAX_PIECES: usize = 8;

/// Writes a response until it ends or the client disconnects, and then closes the connection.
///
/// # Errors
/// When the connection breaks.
pub(super) async fn write_answer<S, B>(mut socket: S, answer: Response<B>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Body<Data: Into<Bytes>> + Unpin,
{
    let is_chunked = answer.version() == Version::HTTP_11;
    let (mut head, mut body) = {
        let (head, body) = answer.into_parts();
        (Some(encode_head(&head, is_chunked)), body)
    };
    let (mut pieces, mut is_silent) = (Vec::new(), true);
    loop {
        let mut unread = [0; 64];
        let has_ended = tokio::select! {
            biased;
            has_ended = take_ready(&mut body, &mut pieces) => has_ended,
            read = socket.read(&mut unread), if is_silent => match read? {
                0 => return Ok(()),
                // Bytes after the last request are not read.
                _ => {
                    is_silent = false;
                    continue;
                }
            },
        };
        if is_chunked {
            frame(&mut pieces, has_ended);
        }
        pieces.splice(..0, head.take());
        write_all(&mut socket, &mut pieces).await?;
        // TLS may have taken bytes that the socket has not.
        socket.flush().await?;
        // Yield to other runnable threads.
        thread::yield_now();
        if has_ended {
            return socket.shutdown().await;
        }
    }
}

/// Waits for pieces of a body and takes all that are ready. Returns whether the body has ended.
async fn take_ready<B: Body<Data: Into<Bytes>> + Unpin>(body: &mut B, pieces: &mut Vec<Bytes>) -> bool {
    let mut next = body.frame().await;
    loop {
        let Some(Ok(frame)) = next else { return true };
        pieces.extend(frame.into_data().ok().map(Into::into).filter(|data: &Bytes| !data.is_empty()));
        if pieces.len() == MAX_PIECES {
            return false;
        }
        let Some(ready) = body.frame().now_or_never() else { return false };
        next = ready;
    }
}

/// Frames all pieces as one chunk, and appends the last chunk if the body has ended (RFC 9112, 7.1).
fn frame(pieces: &mut Vec<Bytes>, has_ended: bool) {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    if length > 0 {
        pieces.insert(0, format!("{length:x}\r\n").into());
        pieces.push(Bytes::from_static(b"\r\n"));
    }
    pieces.extend(has_ended.then_some(Bytes::from_static(b"0\r\n\r\n")));
}

/// Writes and removes all pieces.
pub(crate) async fn write_all<S: AsyncWrite + Unpin>(
    socket: &mut S,
    pieces: &mut Vec<Bytes>,
) -> io::Result<()> {
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
pub(super) fn encode_head(head: &Parts, is_chunked: bool) -> Bytes {
    let reason = head.status.canonical_reason().unwrap_or_default();
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now()).unwrap_or_default();
    let coding = if is_chunked { "transfer-encoding: chunked\r\n" } else { "" };
    let first = format!("HTTP/1.1 {} {reason}\r\ndate: {date}\r\n{coding}", head.status.as_u16());
    let mut bytes = first.into_bytes();
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::{
        io::{DuplexStream, duplex},
        sync::mpsc,
        task::JoinHandle,
        time::timeout,
    };

    use super::*;

    type Pieces = mpsc::UnboundedSender<&'static str>;

    /// A response whose body is the sent pieces, written to a connection that buffers this many bytes.
    fn write(bytes: usize, version: Version) -> (Pieces, DuplexStream, JoinHandle<io::Result<()>>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let pieces = stream::unfold(receiver, |mut receiver: mpsc::UnboundedReceiver<_>| async {
            let piece = receiver.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(piece))), receiver))
        });
        let body = StreamBody::new(Box::pin(pieces));
        let answer = Response::builder().version(version).header("x-one", "1").body(body).unwrap();
        let (client, server) = duplex(bytes);
        (sender, client, tokio::spawn(write_answer(server, answer)))
    }

    async fn ends(writing: JoinHandle<io::Result<()>>) -> io::Result<()> {
        timeout(Duration::from_secs(20), writing).await.expect("it ends").unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_written_as_it_comes_and_its_end_is_seen() {
        for (bytes, version) in [(1, Version::HTTP_11), (7, Version::HTTP_10), (4096, Version::HTTP_11)] {
            let (sender, mut client, writing) = write(bytes, version);
            for piece in ["one", "", "two"] {
                sender.send(piece).unwrap();
            }
            let mut text = String::new();
            while !text.ends_with("two") {
                text.push(char::from(client.read_u8().await.unwrap()));
            }
            client.write_all(b"G").await.unwrap();
            sender.send("three").unwrap();
            drop(sender);
            client.read_to_string(&mut text).await.unwrap();
            ends(writing).await.unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(
                head.starts_with("HTTP/1.1 200 OK\r\ndate: ") && head.ends_with("\r\nx-one: 1"),
                "{head}"
            );
            match version {
                Version::HTTP_10 => assert_eq!(body, "onetwothree"),
                _ => assert_eq!(body, "6\r\nonetwo\r\n5\r\nthree\r\n0\r\n\r\n"),
            }
            assert_eq!(head.contains("\r\ntransfer-encoding: chunked\r\n"), version == Version::HTTP_11);
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_it() {
        let (_sender, client, writing) = write(4096, Version::HTTP_11);
        drop(client);
        ends(writing).await.unwrap();
        let (sender, client, writing) = write(7, Version::HTTP_11);
        sender.send("more than is taken").unwrap();
        drop(client);
        ends(writing).await.unwrap_err();
    }
}
