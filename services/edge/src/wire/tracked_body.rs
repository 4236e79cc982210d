//! A response body that keeps its request in flight and updates its access log record.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use hyper::body::{Body, Frame, SizeHint};

use crate::{access_log::record::Record, connection::InFlightRequest};

/// A body that keeps its request in flight until it is dropped.
pub(crate) struct TrackedBody<B> {
    body: B,
    request: InFlightRequest,
    /// Present where the access log is on.
    record: Option<Box<Record>>,
}

impl<B> TrackedBody<B> {
    /// The body of the answer to a request.
    pub(super) fn new(body: B, request: InFlightRequest, record: Option<Box<Record>>) -> Self {
        Self { body, request, record }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Self { body, request, record } = &mut *self;
        request.connection.count_frame();
        let frame = ready!(pin!(&mut *body).poll_frame(context));
        if let Some(record) = record {
            record.add_frame(&frame, body.is_end_stream());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
