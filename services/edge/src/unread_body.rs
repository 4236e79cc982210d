//! What a client still sends when it has been answered. Closing a connection with unread bytes resets it, and the client
//! loses what it has not read of the answer.
//!
//! The response to an HTTP/2 request may precede the end of its body (RFC 9113, 8.1), but curl 7.88 waits for more, or
//! reports the reset of the dropped body as a failure. Short bodies are therefore read before the response and longer
//! ones after it, within the limits of HTTP/1's lingering close.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink},
    time::timeout,
};

/// Longest time in which an unread rest is read so that the client can read the response.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(1);

/// Most bytes read during it.
pub(crate) const LINGER_BYTES: usize = 4 << 20;

/// Ends the output of a connection and reads the rest of its input, at most so many bytes.
pub(crate) async fn linger(mut connection: impl AsyncRead + AsyncWrite + Unpin, most: u64) {
    let closed = async {
        connection.shutdown().await?;
        copy(&mut connection.take(most), &mut sink()).await
    };
    let _ = timeout(LINGER_TIME, closed).await;
}

/// Reads a body to its end, or as far as the limits allow.
pub(crate) async fn drain<E>(body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin)) {
    let _ = timeout(LINGER_TIME, async {
        let mut left = LINGER_BYTES;
        while let Some(Ok(piece)) = body.next().await {
            if piece.len() > left {
                return;
            }
            left -= piece.len();
        }
    })
    .await;
}

/// Reads the rest of a body after the response, unless it has ended.
pub(crate) fn discard<E: Send>(mut body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static) {
    // Most bodies have been read: no task is needed.
    if !matches!(body.next().now_or_never(), Some(None | Some(Err(_)))) {
        tokio::spawn(async move { drain(&mut body).await });
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    /// A body, and a sender that is closed once the body is dropped.
    fn body() -> (mpsc::Sender<usize>, impl Stream<Item = Result<Bytes, Infallible>> + Send + Unpin) {
        let (sender, receiver) = mpsc::channel(1);
        let pieces = stream::unfold(receiver, |mut receiver| async {
            let length = receiver.recv().await?;
            Some((Ok(Bytes::from(vec![0; length])), receiver))
        });
        (sender, Box::pin(pieces.fuse()))
    }

    #[tokio::test]
    async fn a_short_body_is_read_to_its_end() {
        let (sender, mut short) = body();
        let sending = async {
            sender.send(64 << 10).await.unwrap();
            sender.send(1).await.unwrap();
            drop(sender);
        };
        let started = Instant::now();
        tokio::join!(drain(&mut short), sending);
        assert!(started.elapsed() < LINGER_TIME);
        assert!(short.next().await.is_none());
    }

    #[tokio::test]
    async fn a_body_is_read_for_a_while_and_up_to_a_bound() {
        let (sender, silent) = body();
        let started = Instant::now();
        discard(silent);
        sender.closed().await;
        assert!(started.elapsed() >= LINGER_TIME);

        let (sender, endless) = body();
        discard(endless);
        let mut sent = 0;
        while sender.send(64 << 10).await.is_ok() {
            sent += 64 << 10;
        }
        assert!((LINGER_BYTES..LINGER_BYTES * 2).contains(&sent), "{sent} bytes");
    }
}
