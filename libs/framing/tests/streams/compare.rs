//! Reads a stream with framing and with hyper. Both must read the accepted bytes in the same way; where
//! framing refuses a byte, hyper must refuse the bytes that replace the rest. Shared by tests and the fuzz
//! target.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{
    StatusCode, Version,
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
    server::conn::http1,
    service::service_fn,
};
use mesh_framing::{POISON, is_host};

use crate::record::{Request, read};

/// After this many polls, a connection counts as hanging.
const POLLS_AT_MOST: usize = 1_000_000;

/// The status of every answer. A success would turn `CONNECT` into a tunnel.
const ANSWERED: StatusCode = StatusCode::NOT_FOUND;

/// The result of reading a stream with hyper.
#[derive(Default)]
struct Hyper {
    requests: Vec<Request>,
    /// Whether it stops reading: the client requests `Connection: close`, or the body is invalid.
    stops: bool,
    /// A `Host` that is neither empty nor a host.
    odd_host: Option<String>,
}

/// A client that sends its bytes in pieces and then ends the stream.
struct Client<'a> {
    sent: &'a [u8],
    /// Lengths of the pieces, repeated.
    pieces: &'a [u8],
    piece: usize,
    answers: Rc<RefCell<Vec<u8>>>,
}

impl Read for Client<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let piece = self
            .pieces
            .get(self.piece % self.pieces.len().max(1))
            .map_or(usize::MAX, |piece| usize::from(*piece) + 1);
        self.piece += 1;
        let (now, later) = self.sent.split_at(piece.min(into.remaining()).min(self.sent.len()));
        into.put_slice(now);
        self.sent = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Client<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answers.borrow_mut().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn answer(
    seen: Rc<RefCell<Hyper>>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Empty<Bytes>>, Infallible> {
    let (head, mut body) = request.into_parts();
    let at = {
        let mut seen = seen.borrow_mut();
        seen.requests.push(Request::default());
        seen.stops |= head.version == Version::HTTP_10 || head.headers.contains_key("connection");
        let mut hosts = head.headers.get_all("host").iter();
        let is_odd = |value: &&hyper::header::HeaderValue| !value.is_empty() && !is_host(value.as_bytes());
        seen.odd_host = hosts.find(is_odd).map(|value| format!("{value:?}")).or(seen.odd_host.take());
        seen.requests.len() - 1
    };
    let mut is_whole = true;
    while let Some(frame) = body.frame().await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(bytes)) => seen.borrow_mut().requests[at].body.extend_from_slice(&bytes),
            Ok(Err(_trailers)) => {}
            Err(_) => {
                seen.borrow_mut().stops = true;
                is_whole = false;
                break;
            }
        }
    }
    seen.borrow_mut().requests[at].is_whole = is_whole;
    let mut response = hyper::Response::new(Empty::new());
    *response.status_mut() = ANSWERED;
    Ok(response)
}

/// Serves a stream with hyper; returns the requests and the status lines of the responses.
fn serve(sent: &[u8], pieces: &[u8]) -> Result<(Hyper, Vec<String>), String> {
    let (seen, answers) = (Rc::<RefCell<Hyper>>::default(), Rc::<RefCell<Vec<u8>>>::default());
    let client = Client { sent, pieces, piece: 0, answers: Rc::clone(&answers) };
    let service = service_fn(|request| answer(Rc::clone(&seen), request));
    let served =
        http1::Builder::new().half_close(true).max_buf_size(64 << 10).serve_connection(client, service);
    let is_served = {
        let mut served = pin!(served);
        let mut context = Context::from_waker(Waker::noop());
        (0..POLLS_AT_MOST).any(|_| served.as_mut().poll(&mut context).is_ready())
    };
    if !is_served {
        return Err("hyper waits for more".to_owned());
    }
    let answers = String::from_utf8_lossy(&answers.borrow()).into_owned();
    let statuses = answers.split("\r\n\r\n").filter_map(|head| head.get(9..12).map(str::to_owned));
    Ok((seen.take(), statuses.filter(|status| status != "100").collect()))
}

/// Compares the two readers of a stream that is sent in pieces of these lengths.
///
/// # Errors
/// The difference.
pub(crate) fn compare(stream: &[u8], pieces: &[u8]) -> Result<(), String> {
    let (framed, framing) = read([stream]);
    if framing.is_http2() {
        return Ok(());
    }
    let mut sent = stream.to_vec();
    if let Some((at, _)) = framed.refused {
        sent.truncate(at);
        sent.extend_from_slice(POISON);
    }
    let (hyper, statuses) = serve(&sent, pieces)?;
    let report = || format!("framing: {framed:?}\nhyper: {:?} {statuses:?}", hyper.requests);
    if let Some(host) = hyper.odd_host {
        return Err(format!("hyper sees the host {host}\n{}", report()));
    }
    if hyper.requests.len() > framed.requests.len() {
        return Err(format!("hyper sees more requests\n{}", report()));
    }
    for (seen, framed) in hyper.requests.iter().zip(&framed.requests) {
        let agree = if seen.is_whole { seen == framed } else { framed.body.starts_with(&seen.body) };
        if !agree {
            return Err(format!("hyper sees another body\n{}", report()));
        }
    }
    let has_refused = statuses.last().is_some_and(|status| status != ANSWERED.as_str());
    let has_stopped = hyper.stops || has_refused;
    if hyper.requests.len() < framed.requests.len() && !has_stopped {
        return Err(format!("hyper sees fewer requests\n{}", report()));
    }
    if framed.refused.is_some() && !has_stopped {
        return Err(format!("hyper does not refuse what framing refuses\n{}", report()));
    }
    Ok(())
}
