//! Downloads: a stream of the bus as a file (contract X4, X4a, X10-X12, L7). The headers come from opening
//! the stream; the body is pulled as the client reads it, and breaks off when the stream does.

use std::{io, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
        CONTENT_TYPE, ETAG, IF_RANGE, VARY,
    },
};
use mesh_bus::{Format, OpenReply, PullStream};
use mesh_chassis::accept::{accepts_gzip, accepts_type};
use mesh_problem::{NOT_MAPPED, Problem};
use sync_wrapper::SyncStream;
use tokio::time::timeout;
use warp::reply::{Reply as _, Response};

use crate::{
    admission::{client_limit::ClientPermit, fair_semaphore::Permit, head::HttpError},
    ask::{answer::describe_head, backend::Backend, cache::Question, call_context::CallContext},
    respond::{
        answer,
        chunk_form::{self, NDJSON},
        gzip,
        notes::StreamFailure,
        range::RequestedRange,
    },
    wire::stalled_stream::StalledStream,
};

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
const X_TOTAL_ROWS: HeaderName = HeaderName::from_static("x-total-rows");

/// The media types of files.
const FILE_TYPES: [&str; 2] = ["application/zip", "text/csv"];

/// Greatest frame towards a client (S5), so that thousands of stalled clients cost little memory.
const FRAME_BYTES: usize = 64 << 10;

/// Longest time that the head of a response waits for the first piece of its body.
const FIRST_PIECE_WAIT: Duration = Duration::from_secs(2);

/// A requested download.
pub(crate) struct Download<'a> {
    pub(crate) backend: &'a Backend,
    pub(crate) question: &'a Question,
    pub(crate) context: &'a CallContext,
    /// The client's headers.
    pub(crate) headers: &'a HeaderMap,
    pub(crate) is_head: bool,
    pub(crate) is_http2: bool,
    /// Held by the body.
    pub(crate) permit: Option<ClientPermit>,
    /// Held until the stream is opened: a store that does not answer must not hold up the client's other requests.
    pub(crate) opening: Option<Permit<3>>,
}

impl Download<'_> {
    /// Answers with the file, a part of it, or its chunks as JSON.
    pub(crate) async fn answer(mut self) -> Result<Response, HttpError> {
        // Clients that accept the file, too, list every format they can read.
        let accepts_file = FILE_TYPES.iter().any(|media_type| accepts_type(self.headers, media_type));
        if accepts_type(self.headers, NDJSON) && !accepts_file {
            return self.chunks().await;
        }
        let requested = RequestedRange::of_headers(self.headers).filter(|_| !self.is_head);
        let first = requested.and_then(RequestedRange::first).unwrap_or(0);
        let opened = self.open(first).await?;
        let etag = (!opened.etag.is_empty()).then(|| format!("\"{}\"", opened.etag));
        answer::check_if_match(self.headers, etag.as_deref())?;
        let mut headers = self.describe(&opened, etag.as_deref());
        if etag.as_deref().is_some_and(|etag| answer::is_unchanged(self.headers, etag)) {
            headers.remove(CONTENT_TYPE);
            headers.remove(CONTENT_DISPOSITION);
            return Ok(respond(StatusCode::NOT_MODIFIED, headers, stream::empty()));
        }
        let length = opened.info.total_bytes;
        let requested = requested.filter(|_| self.is_range_valid(etag.as_deref())).zip(length);
        let (status, range) = match requested.map(|(range, length)| (range.within(length), length)) {
            None => (StatusCode::OK, None),
            Some((Some(range), length)) => {
                let content_range = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                headers.insert(CONTENT_RANGE, text(content_range));
                (StatusCode::PARTIAL_CONTENT, Some(range))
            }
            Some((None, length)) => {
                let is_pretty = self.question.encoding.format == Format::PrettyJson;
                return Ok(not_satisfiable(length, is_pretty));
            }
        };
        if let Some(length) = range.as_ref().map(|range| range.end - range.start).or(length) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        if range.is_none() && length.is_none() && accepts_gzip(self.headers) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if self.is_head {
            return Ok(respond(status, headers, stream::empty()));
        }
        let opened = self.opened_at(range.as_ref().map_or(0, |range| range.start), opened).await?;
        let to_byte = range.map(|range| range.end).filter(|end| Some(*end) != length);
        let failure = StreamFailure::default();
        let pulled = self.pull(&opened, to_byte).await?;
        drop(self.opening.take());
        let pieces = begin(pulled, failure.clone()).await?;
        // A failure of the stream is one of the transfer (X10).
        let bytes = pieces.map(|piece| piece.map_err(|problem| io::Error::other(problem.to_string())));
        Ok(self.respond(status, headers, bytes, failure))
    }

    /// Answers with one JSON object per chunk and line (X11).
    async fn chunks(&mut self) -> Result<Response, HttpError> {
        let opened = self.open(0).await?;
        answer::check_if_match(self.headers, None)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
        headers.insert(VARY, vary(&opened));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if opened.info.total_bytes.is_none() && accepts_gzip(self.headers) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(head) = &opened.head {
            describe_head(&mut headers, head);
        }
        if self.is_head {
            return Ok(respond(StatusCode::OK, headers, stream::empty()));
        }
        let failure = StreamFailure::default();
        let pulled = self.pull(&opened, None).await?;
        drop(self.opening.take());
        let pieces = begin(pulled, failure.clone()).await?;
        let lines = chunk_form::lines(opened.content_type, opened.info, pieces).map(Ok);
        Ok(self.respond(StatusCode::OK, headers, lines, failure))
    }

    /// The response with these bytes, compressed where its headers say so.
    fn respond(
        &mut self,
        status: StatusCode,
        headers: HeaderMap,
        bytes: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        failure: StreamFailure,
    ) -> Response {
        let permit = self.permit.take();
        let mut response = match headers.contains_key(CONTENT_ENCODING) {
            true => respond(status, headers, frames(gzip::compress(bytes), permit, self.is_http2)),
            false => respond(status, headers, frames(bytes, permit, self.is_http2)),
        };
        response.extensions_mut().insert(failure);
        response
    }

    async fn open(&self, from_byte: u64) -> Result<OpenReply, Problem> {
        self.backend.open(self.question, self.context, from_byte).await
    }

    /// A download that is opened at this byte, again where that is necessary.
    async fn opened_at(&self, byte: u64, opened: OpenReply) -> Result<OpenReply, Problem> {
        if opened.from_byte == byte {
            return Ok(opened);
        }
        let again = self.open(byte).await?;
        if again.etag != opened.etag || again.from_byte != byte {
            return Err(Problem::unavailable("the export has just changed"));
        }
        Ok(again)
    }

    async fn pull(&self, opened: &OpenReply, to_byte: Option<u64>) -> Result<PullStream, Problem> {
        self.backend.pull(self.question, self.context, opened, to_byte).await
    }

    /// Whether `If-Range` allows a part: it names the file whose beginning the client has.
    fn is_range_valid(&self, etag: Option<&str>) -> bool {
        match self.headers.get(IF_RANGE) {
            None => true,
            Some(condition) => etag.is_some_and(|etag| condition == etag),
        }
    }

    /// The headers of the whole file.
    fn describe(&self, opened: &OpenReply, etag: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, text(opened.content_type.clone()));
        let disposition = format!("attachment; filename=\"{}\"", opened.info.file_name);
        headers.insert(CONTENT_DISPOSITION, text(disposition));
        let is_known = opened.info.total_bytes.is_some();
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static(if is_known { "bytes" } else { "none" }));
        headers.insert(VARY, vary(opened));
        if let Some(head) = &opened.head {
            describe_head(&mut headers, head);
        }
        if let Some(rows) = opened.info.total_rows {
            headers.insert(X_TOTAL_ROWS, rows.into());
        }
        if let Some(crc32c) = opened.crc32c {
            headers.insert(REPR_DIGEST, text(digest(crc32c)));
        }
        let cache_control = match etag {
            Some(etag) => {
                headers.insert(ETAG, text(etag.to_owned()));
                match opened.is_permanent {
                    true => "public, max-age=31536000, immutable",
                    // A network that was reset gives other bytes at the same URL.
                    false => "public, max-age=3600",
                }
            }
            None => "no-cache",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        headers
    }
}

/// What the form of a download depends on: without a length in advance it is compressed when the client accepts that.
fn vary(opened: &OpenReply) -> HeaderValue {
    let is_known = opened.info.total_bytes.is_some();
    HeaderValue::from_static(if is_known { "Accept" } else { "Accept, Accept-Encoding" })
}

/// `Repr-Digest` (RFC 9530) of a CRC-32C, most significant byte first.
fn digest(crc32c: u32) -> String {
    use base64::Engine as _;
    format!("crc32c=:{}:", base64::engine::general_purpose::STANDARD.encode(crc32c.to_be_bytes()))
}

/// A header value; file names come from the services and are plain ASCII.
fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""))
}

fn not_satisfiable(length: u64, is_pretty: bool) -> Response {
    let problem = Problem::invalid(NOT_MAPPED, "the file has no such bytes")
        .with_inner(format!("it has {length} bytes"));
    let status = StatusCode::RANGE_NOT_SATISFIABLE;
    let mut response = answer::error(&HttpError::new(status, problem), is_pretty);
    response.headers_mut().insert(CONTENT_RANGE, text(format!("bytes */{length}")));
    answer::vary(response.headers_mut(), "Accept");
    response
}

fn respond(
    status: StatusCode,
    headers: HeaderMap,
    body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response {
    let mut response = warp::reply::stream(SyncStream::new(body)).into_response();
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Waits a while for the first piece of a stream: a failure before it is the response's status, not a broken transfer. A
/// later one is recorded.
async fn begin(
    pulled: PullStream,
    failure: StreamFailure,
) -> Result<impl Stream<Item = Result<Bytes, Problem>> + Send + 'static, Problem> {
    let mut pulled = Box::pin(pulled.into_stream().fuse());
    let first = timeout(FIRST_PIECE_WAIT, pulled.next()).await.ok().flatten().transpose()?;
    Ok(stream::iter(first.map(Ok)).chain(pulled).inspect(move |piece| failure.record(piece)))
}

/// The same bytes in pieces no longer than a frame. Holds the permit until it is dropped.
fn frames(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    permit: Option<ClientPermit>,
    is_http2: bool,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let state = (Box::pin(pieces), Bytes::new(), permit);
    let frames = stream::unfold(state, |(mut pieces, mut rest, permit)| async move {
        while rest.is_empty() {
            match pieces.next().await? {
                Ok(piece) => rest = piece,
                Err(error) => return Some((Err(error), (pieces, rest, permit))),
            }
        }
        let frame = rest.split_to(rest.len().min(FRAME_BYTES));
        Some((Ok(frame), (pieces, rest, permit)))
    });
    match is_http2 {
        true => StalledStream::new(frames, || io::Error::from(io::ErrorKind::TimedOut), || {}).left_stream(),
        false => frames.right_stream(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_are_cut_into_frames_and_a_failure_stays_one() {
        let pieces =
            [Ok(Bytes::from(vec![1; FRAME_BYTES + 1])), Ok(Bytes::new()), Err(io::Error::other("broken"))];
        let framed: Vec<_> = frames(stream::iter(pieces), None, true).take(3).collect().await;
        let lengths: Vec<_> = framed.iter().map(|frame| frame.as_ref().map(Bytes::len).ok()).collect();
        assert_eq!(lengths, [Some(FRAME_BYTES), Some(1), None]);
    }
}
