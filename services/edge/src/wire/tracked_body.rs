//! A response body that keeps its request in flight and updates its access log record.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Buf, Frame, SizeHint};

use crate::{
    access_log::record::{Ended, Record},
    connection::{InFlightRequest, Unsent},
    keys::usage::Meter,
};

/// A client makes progress with so many bytes, or all of a piece: one byte now and then is none.
const PROGRESS: usize = 64 << 10;

/// Bytes of a body. Over HTTP/2 they are sent as the client allows it, often long after the body has ended.
pub(crate) struct BodyBytes {
    bytes: Bytes,
    unsent: Option<Unsent>,
    /// Bytes that the client has taken since its last progress.
    taken: usize,
}

impl Buf for BodyBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.bytes.advance(bytes);
        self.taken += bytes;
        if let Some(unsent) = self.unsent.as_ref().filter(|_| self.taken >= PROGRESS || self.bytes.is_empty())
        {
            unsent.count();
            self.taken = 0;
        }
    }
}

impl From<BodyBytes> for Bytes {
    fn from(body: BodyBytes) -> Self {
        body.bytes
    }
}

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

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = BodyBytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyBytes>, B::Error>>> {
        let Self { body, request, record, meter } = &mut *self;
        request.connection.count_frame();
        let frame = ready!(pin!(&mut *body).poll_frame(context));
        if let Some(record) = record {
            record.add_frame(&frame, body.is_end_stream());
        }
        if let (Some(meter), Some(Ok(frame))) = (meter, &frame) {
            meter.send(frame.data_ref().map_or(0, Buf::remaining));
        }
        let mark = |bytes| {
            let connection = &request.connection;
            BodyBytes { bytes, unsent: connection.is_http2().then(|| connection.mark_unsent()), taken: 0 }
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(mark))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use http_body_util::Full;
    use hyper::{Request, Response, body::Incoming, server::conn::http2, service::service_fn};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use mesh_testbed::http2::{self as client, Connection, DATA, Frame, get_request};
    use tokio::{
        net::{TcpListener, TcpStream},
        time::{sleep, timeout},
    };

    use super::*;
    use crate::{
        connection::ConnectionState,
        wire::timeouts::{TimeoutStream, Timeouts},
    };

    const ANSWER: &[u8] = b"answered";
    /// Every timeout of the connection.
    const SHORT: Duration = Duration::from_secs(1);

    /// A connection that is served until it times out, and its client, whose window takes one byte of the answer.
    async fn serve() -> (Arc<ConnectionState>, impl Future<Output = ()> + Send + 'static, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut client = Connection::over(stream, &[0, 4, 0, 0, 0, 1]).await.unwrap();
        client.send(&Frame::request(1, &get_request("/", &[(client::AUTHORITY, "x")]))).await.unwrap();
        let state = Arc::new(ConnectionState::default());
        state.set_http2();
        let timeouts = Timeouts { head: SHORT, idle: SHORT, stall: SHORT };
        let stream = TimeoutStream::new(listener.accept().await.unwrap().0, Arc::clone(&state), timeouts);
        let connection = Arc::clone(&state);
        let service = service_fn(move |_: Request<Incoming>| {
            let body = TrackedBody::new(Full::from(ANSWER), connection.start_request(), None, None);
            async { Ok::<_, Infallible>(Response::new(body)) }
        });
        let served =
            http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
        (state, async { drop(served.await) }, client)
    }

    /// Takes the answer byte by byte. Returns how many came before the connection ended, and whether it stalled.
    async fn take_slowly(pause: Duration) -> (usize, bool) {
        let (state, served, mut client) = serve().await;
        let served = tokio::spawn(served);
        let mut taken = 0;
        while taken < ANSWER.len()
            && let Ok(data) = client.next(DATA).await
        {
            taken += data.payload.len();
            sleep(pause).await;
            let window = Frame { kind: 8, flags: 0, stream: 1, payload: vec![0, 0, 0, 1] };
            let _ = client.send(&window).await;
        }
        timeout(SHORT * 20, served).await.expect("an idle connection stays open").unwrap();
        (taken, state.has_stalled())
    }

    #[tokio::test]
    async fn an_http2_client_gets_all_of_an_answer_that_it_takes_in_time() {
        assert_eq!(take_slowly(SHORT / 20).await, (ANSWER.len(), false));
        let (taken, has_stalled) = take_slowly(SHORT * 2 / 3).await;
        assert!(taken < ANSWER.len() && has_stalled, "a byte now and then: {taken}");
    }

    #[tokio::test]
    async fn an_http2_client_that_takes_no_byte_of_a_long_lived_stream_times_out() {
        let (state, served, _client) = serve().await;
        let _long_lived = state.mark_long_lived();
        timeout(SHORT * 20, served).await.expect("it stays open");
        assert!(state.has_stalled());
    }
}
