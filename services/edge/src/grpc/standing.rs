//! Streams that may stand for as long as their client likes: watching health, talking to reflection.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use hyper::body::{Frame, SizeHint};
use mesh_problem::Problem;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Interval, interval},
};
use tonic::{Status, body::Body};

use super::status;

/// How often a stream is looked at although nothing comes: a connection on which nothing is looked at for longer
/// than its client may stand still is closed.
const LOOKED_AT: Duration = Duration::from_secs(30);

/// The body of such a stream. It ends, saying so, when the edge stops.
pub(super) struct Standing {
    body: Body,
    stop: BoxFuture<'static, ()>,
    looks: Interval,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Standing {
    /// A body that ends when `stop` comes, and holds its place until then.
    pub(super) fn new(body: Body, stop: BoxFuture<'static, ()>, place: OwnedSemaphorePermit) -> Self {
        Self { body, stop, looks: interval(LOOKED_AT), is_over: false, _place: place }
    }
}

impl hyper::body::Body for Standing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        // Each tick has it polled anew, which counts as progress.
        while self.looks.poll_tick(context).is_ready() {}
        if self.stop.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.is_over = true;
        let mut trailers = HeaderMap::new();
        status::status(&Problem::unavailable("the edge is stopping")).add_header(&mut trailers)?;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
