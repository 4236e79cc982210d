//! A response body that keeps its request in flight and updates its access log record.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use hyper::body::{Body, Buf, Frame, SizeHint};

use crate::{
    access_log::record::{Ended, Record},
    connection::InFlightRequest,
    keys::usage::Meter,
};

/// A body that keeps its request in flight until it is dropped.
pub(crate) struct TrackedBody<B> {
    body: B,
    request: InFlightRequest,
    /// Present where the access log is on.
    record: Option<Box<Record>>,
    /// Present when the client has a key.
    meter: Option<Arc<Meter>>,
}

impl<B> TrackedBody<B> {
    /// The body of the answer to a request.
    pub(super) fn new(
        body: B,
        request: InFlightRequest,
        record: Option<Box<Record>>,
        meter: Option<Arc<Meter>>,
    ) -> Self {
        Self { body, request, record, meter }
    }

    /// Records the end of a connection that speaks another protocol, and the bytes that were sent in it.
    pub(super) fn set_end(&mut self, bytes: u64, ended: Ended) {
        if let Some(record) = &mut self.record {
            record.set_end(bytes, ended);
        }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Self { body, request, record, meter } = &mut *self;
        request.connection.count_frame();
        let frame = ready!(pin!(&mut *body).poll_frame(context));
        if let Some(record) = record {
            record.add_frame(&frame, body.is_end_stream());
        }
        if let (Some(meter), Some(Ok(frame))) = (meter, &frame) {
            meter.send(frame.data_ref().map_or(0, Buf::remaining));
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
