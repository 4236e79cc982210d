//! Streams that end when their client takes nothing (contract section 7, W3). Over HTTP/2 other answers keep the connection
//! alive, and hyper polls no body that the client gives no room.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::config::STALL_TIMEOUT;

/// How often a stream is looked at before its time is over.
const LOOKS: u32 = 4;

/// A stream whose source is dropped when no item is asked for in [`STALL_TIMEOUT`]. Then it fails.
pub(crate) struct StalledStream<S, E> {
    source: Arc<Mutex<Source<S>>>,
    failure: fn() -> E,
}

struct Source<S> {
    /// `None` when it was dropped.
    stream: Option<Pin<Box<S>>>,
    /// Since when it is the client's turn to ask.
    idle_since: Option<Instant>,
}

impl<S: Send + 'static, E> StalledStream<S, E> {
    /// Guards a stream. `failure` is its last item when the client took nothing; `on_stall` is called then.
    pub(crate) fn new(stream: S, failure: fn() -> E, on_stall: impl FnOnce() + Send + 'static) -> Self {
        Self::within(STALL_TIMEOUT, stream, failure, on_stall)
    }

    fn within(
        limit: Duration,
        stream: S,
        failure: fn() -> E,
        on_stall: impl FnOnce() + Send + 'static,
    ) -> Self {
        let source = Source { stream: Some(Box::pin(stream)), idle_since: Some(Instant::now()) };
        let source = Arc::new(Mutex::new(source));
        let watched = Arc::downgrade(&source);
        tokio::spawn(async move {
            loop {
                sleep(limit / LOOKS).await;
                let Some(source) = watched.upgrade() else { return };
                let mut source = source.lock();
                if source.idle_since.is_some_and(|since| since.elapsed() >= limit) {
                    source.stream = None;
                    return on_stall();
                }
            }
        });
        Self { source, failure }
    }
}

impl<S: Stream<Item = Result<T, E>>, T, E> Stream for StalledStream<S, E> {
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut source = self.source.lock();
        let Some(stream) = &mut source.stream else { return Poll::Ready(Some(Err((self.failure)()))) };
        let item = stream.as_mut().poll_next(context);
        source.idle_since = item.is_ready().then(Instant::now);
        item
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use mesh_testbed::eventually;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn a_stream_is_cut_when_nothing_is_asked_and_not_when_its_source_is_slow() {
        let permit = Arc::new(());
        let source = stream::unfold((0, Arc::clone(&permit)), |(number, permit)| async move {
            sleep(LIMIT * 3 / 2).await;
            Some((Ok(number), (number + 1, permit)))
        });
        let mut stream = Box::pin(StalledStream::within(LIMIT, source, || "stalled", || {}));
        for number in 0..2 {
            assert_eq!(stream.next().await, Some(Ok(number)));
        }
        let is_released = async || Arc::strong_count(&permit) == 1;
        eventually(LIMIT * 40, "the source is held", is_released).await;
        assert_eq!(stream.next().await, Some(Err("stalled")));
    }
}
