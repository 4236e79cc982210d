//! A response body that keeps its request in flight and updates its access log record.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use hyper::body::{Body, Buf, Frame, SizeHint};

use crate::{access_log::record::Record, connection::InFlightRequest, keys::usage::MeteredAnswer};

/// A body that keeps its request in flight until it is dropped.
pub(crate) struct TrackedBody<B> {
    body: B,
    request: InFlightRequest,
    /// Present where the access log is on.
    record: Option<Box<Record>>,
    /// Present when the client has a key.
    metered: Option<MeteredAnswer>,
}

impl<B> TrackedBody<B> {
    /// The body of the answer to a request.
    pub(super) fn new(
        body: B,
        request: InFlightRequest,
        record: Option<Box<Record>>,
        metered: Option<MeteredAnswer>,
    ) -> Self {
        Self { body, request, record, metered }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Self { body, request, record, metered } = &mut *self;
        request.connection.count_frame();
        let frame = ready!(pin!(&mut *body).poll_frame(context));
        if let Some(record) = record {
            record.add_frame(&frame, body.is_end_stream());
        }
        if let (Some(metered), Some(Ok(frame))) = (metered, &frame) {
            metered.send(frame.data_ref().map_or(0, Buf::remaining));
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
