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
use tokio::time::{Interval, interval};
use tonic::{Status, body::Body};

use super::status;
use crate::room::Place;

/// How often a stream is looked at although nothing comes: a connection on which nothing is looked at for longer
/// than its client may stand still is closed.
const LOOKED_AT: Duration = Duration::from_secs(30);

/// The body of such a stream. It ends, saying so, when the edge stops.
pub(super) struct Standing {
    body: Body,
    stop: BoxFuture<'static, ()>,
    looks: Interval,
    is_over: bool,
    _place: Place<1>,
}

impl Standing {
    /// A body that ends when `stop` comes, and holds its place until then.
    pub(super) fn new(body: Body, stop: BoxFuture<'static, ()>, place: Place<1>) -> Self {
        Self::looked_at(body, stop, place, LOOKED_AT)
    }

    fn looked_at(body: Body, stop: BoxFuture<'static, ()>, place: Place<1>, every: Duration) -> Self {
        Self { body, stop, looks: interval(every), is_over: false, _place: place }
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

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn},
        sync::Arc,
    };

    use futures_util::{FutureExt, stream};
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Body as _;
    use tokio::sync::oneshot;

    use super::*;
    use crate::room::{Holder, Room};

    const SOMEBODY: [Holder; 1] = [Holder::Operation("Watch")];

    /// A stream that says nothing, in a room of one.
    fn silent(stop: BoxFuture<'static, ()>, every: Duration) -> (Standing, Arc<Room>) {
        let room = Room::new(1);
        let place = room.enter(SOMEBODY).unwrap();
        let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Status>>());
        (Standing::looked_at(Body::new(body), stop, place, every), room)
    }

    #[tokio::test]
    async fn a_stream_on_which_nothing_happens_is_looked_at_all_the_same() {
        let (mut standing, _room) = silent(pending().boxed(), Duration::from_millis(1));
        let mut looks = 0;
        poll_fn(|context| {
            looks += 1;
            let frame = Pin::new(&mut standing).poll_frame(context);
            assert!(frame.is_pending());
            if looks == 5 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[tokio::test]
    async fn a_stop_ends_it_with_a_status_and_frees_its_place() {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = stopped.map(drop).boxed();
        let (mut standing, room) = silent(stopped, Duration::from_secs(3600));
        assert!(standing.frame().now_or_never().is_none());
        stop.send(()).unwrap();
        let trailers = standing.frame().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
        assert!(standing.frame().await.is_none());
        assert!(room.enter(SOMEBODY).is_err());
        drop(standing);
        assert!(room.enter(SOMEBODY).is_ok());
    }
}
