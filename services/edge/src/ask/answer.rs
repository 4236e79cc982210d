//! A service's reply as an HTTP answer that several clients may get: body, headers and entity tag.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY},
};
use mesh_bus::{Head, Reply};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::metrics::OperationMetrics;

const X_BLOCK_HEIGHT: HeaderName = HeaderName::from_static("x-block-height");
const X_BLOCK_TIMESTAMP: HeaderName = HeaderName::from_static("x-block-timestamp");

/// Replies to reads of up to this many bytes are copied: a piece of a bus message would keep the bus' whole
/// buffer of 64 KiB in memory for as long as it is cached.
const MAX_COPIED: usize = 32 << 10;

/// An answer that several clients may get.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The store's newest block when the answer was read.
    pub(crate) head: Option<Head>,
    /// Entity tag, if any.
    pub(crate) etag: Option<String>,
    /// All headers but those of a single client's request.
    pub(crate) headers: HeaderMap,
    /// The consecutive pieces of the body.
    pub(crate) parts: Vec<Bytes>,
    /// When the service was called.
    pub(crate) asked_at: Instant,
    /// Where answers of this operation are counted.
    pub(crate) metrics: Arc<OperationMetrics>,
}

impl Answer {
    /// The store's height when the answer was read.
    pub(crate) fn height(&self) -> Option<u64> {
        self.head.map(|head| head.height)
    }

    /// Time of that block, nanoseconds since the Unix epoch; 0 if it is not known.
    pub(crate) fn time_ns(&self) -> i64 {
        self.head.map_or(0, |head| head.time_ns)
    }

    /// Whether the body is compressed.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.headers.contains_key(CONTENT_ENCODING)
    }

    /// Length of the body.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    fn of_reply(
        base_headers: &HeaderMap,
        reply: Reply,
        operation: &str,
        message: &[u8],
        metrics: Arc<OperationMetrics>,
    ) -> Self {
        let etag = reply.head.and(reply.digest).map(|digest| etag(operation, message, digest));
        let mut headers = base_headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, reply.len().into());
        if reply.gzipped {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        if let Some(head) = &reply.head {
            describe_head(&mut headers, head);
        }
        if let Some(etag) = etag.as_deref().and_then(|etag| etag.parse().ok()) {
            headers.insert(ETAG, etag);
        }
        Self { head: reply.head, etag, headers, parts: reply.parts, asked_at: Instant::now(), metrics }
    }

    /// The answer to a read, of the service's reply.
    pub(crate) fn of_read(
        base_headers: &HeaderMap,
        reply: Reply,
        (operation, message): (&str, &[u8]),
        asked_at: Instant,
        metrics: Arc<OperationMetrics>,
    ) -> Self {
        let mut answer = Self::of_reply(base_headers, reply, operation, message, metrics);
        answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if answer.bytes() <= MAX_COPIED {
            answer.parts = vec![answer.parts.concat().into()];
        }
        Self { asked_at, ..answer }
    }

    /// The answer to a submission, of the relay's reply.
    pub(crate) fn of_submission(
        base_headers: &HeaderMap,
        reply: Reply,
        (operation, message): (&str, &[u8]),
        metrics: Arc<OperationMetrics>,
    ) -> Self {
        Self::of_reply(base_headers, reply, operation, message, metrics)
    }
}

/// Says which block of the store was the newest one when it was read (J13).
pub(crate) fn describe_head(headers: &mut HeaderMap, head: &Head) {
    headers.insert(X_BLOCK_HEIGHT, head.height.into());
    headers.insert(X_BLOCK_TIMESTAMP, head.time_ns.into());
}

/// A weak entity tag of operation, request and content (J13): a block that does not change the answer keeps it.
/// The same for every encoding of the answer and from every replica.
fn etag(operation: &str, message: &[u8], digest: u128) -> String {
    let request = Sha256::new().chain_update(operation).chain_update([0]).chain_update(message).finalize();
    let mut tag = "W/\"".to_owned();
    for byte in &request[..8] {
        let _ = write!(tag, "{byte:02x}");
    }
    let _ = write!(tag, "-{digest:032x}\"");
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_operation_request_and_content() {
        let tag = etag("A", b"x", 7);
        assert_eq!(tag, etag("A", b"x", 7));
        for other in [
            etag("B", b"x", 7),
            etag("A", b"y", 7),
            etag("Ax", b"", 7),
            etag("A", b"x", 8),
            etag("A", b"x", 7 | 1 << 64),
        ] {
            assert_ne!(tag, other);
        }
    }
}
