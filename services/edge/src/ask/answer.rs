//! A service's reply as an HTTP answer that several clients may get: body, headers and entity tag.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY},
};
use mesh_bus::{Encoding, Format, Head, Reply};
use mesh_chassis::accept::accepts_gzip_alone;
use mesh_problem::Problem;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::{
    admission::ClientContext,
    ask::{answer_memory::AnswerMemory, cache::Question},
    metrics::OperationMetrics,
};

const X_BLOCK_HEIGHT: HeaderName = HeaderName::from_static("x-block-height");
const X_BLOCK_TIMESTAMP: HeaderName = HeaderName::from_static("x-block-timestamp");

/// Replies to reads of up to this many bytes are copied: a piece of a bus message would keep the bus' whole
/// buffer of 64 KiB in memory for as long as it is cached.
const MAX_COPIED: usize = 32 << 10;

/// Caching of an answer that may change with every block (J15).
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

/// The same where a shared cache may keep it for so many seconds (T2).
pub(crate) fn caching_of_newest(shared_max_age_s: u32) -> HeaderValue {
    let shared = || {
        format!("public, max-age=0, s-maxage={shared_max_age_s}, stale-while-revalidate={shared_max_age_s}")
    };
    if shared_max_age_s == 0 { REVALIDATED } else { HeaderValue::try_from(shared()).unwrap_or(REVALIDATED) }
}

/// Caching of an answer to a request with a key: no shared cache keeps it for others (T2), and none keeps it at all
/// where clients without a key get no data.
pub(crate) fn without_shared_caching(headers: &mut HeaderMap, is_anonymous_allowed: bool) {
    let Some(caching) = headers.get(CACHE_CONTROL).and_then(|caching| caching.to_str().ok()) else { return };
    let private = match caching.strip_prefix("public, ") {
        Some(rest) if rest.contains("s-maxage") => REVALIDATED,
        Some(rest) if !is_anonymous_allowed => {
            HeaderValue::try_from(format!("private, {rest}")).unwrap_or(REVALIDATED)
        }
        _ => return,
    };
    headers.insert(CACHE_CONTROL, private);
}

/// Caching of a final answer: an hour, because another chain may run under the same address later (B4).
const FINAL: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// Caching of a final answer to a request that names the chain.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// How long an answer is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validity {
    /// Until the store has a newer block.
    Newest,
    /// As of a block whose rows may still be added to.
    OfBlock,
    /// As of a sealed block: every later answer is the same.
    Final,
}

/// An answer that several clients may get.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The store's newest block when the answer was read, or the block as of which it was read.
    pub(crate) head: Option<Head>,
    pub(crate) validity: Validity,
    /// Entity tag, if any.
    pub(crate) etag: Option<String>,
    /// All headers but those of a single client's request.
    pub(crate) headers: HeaderMap,
    /// The consecutive pieces of the body.
    pub(crate) parts: Vec<Bytes>,
    /// When the service was called.
    pub(crate) asked_at: Instant,
    /// Where the fast path counts it; it never returns the answer to a submission.
    pub(crate) metrics: Option<Arc<OperationMetrics>>,
    /// Where its bytes are counted.
    pub(crate) memory: AnswerMemory,
    /// The client for whom they are.
    pub(crate) client: u64,
}

impl Answer {
    /// The height of [`head`](Self::head).
    pub(crate) fn height(&self) -> Option<u64> {
        self.head.map(|head| head.height)
    }

    /// The store's height when the answer was read; `None` for an answer as of a block. Later answers on the same
    /// connection may not be older.
    pub(crate) fn newest_height(&self) -> Option<u64> {
        self.height().filter(|_| self.validity == Validity::Newest)
    }

    /// Time of that block, nanoseconds since the Unix epoch; 0 if it is not known.
    pub(crate) fn time_ns(&self) -> i64 {
        self.head.map_or(0, |head| head.time_ns)
    }

    /// Whether the body is compressed.
    pub(crate) fn is_gzipped(&self) -> bool {
        self.headers.contains_key(CONTENT_ENCODING)
    }

    /// The entity tag in the response to this request. A strong tag is another one when the edge compresses the body.
    pub(crate) fn tag_for(&self, request: &HeaderMap) -> Option<Cow<'_, str>> {
        let etag = self.etag.as_deref()?;
        let is_strong = self.validity == Validity::Final;
        if is_strong && !self.is_gzipped() && accepts_gzip_alone(request) {
            return Some(Cow::Owned(format!("{}{GZIP_MARK}\"", etag.trim_end_matches('"'))));
        }
        Some(Cow::Borrowed(etag))
    }

    /// The body for a client.
    ///
    /// # Errors
    /// As [`AnswerMemory::hold_short`].
    pub(crate) fn parts_for(&self, client: &ClientContext) -> Result<Cow<'_, [Bytes]>, Problem> {
        match client.connection.is_http2() {
            true => self.memory.hold_short(client.id.number(), &self.parts).map(Cow::Owned),
            false => Ok(Cow::Borrowed(&self.parts)),
        }
    }

    /// Length of the body.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// The answer to a submission, of the relay's reply; the base of the answer to a read.
    pub(crate) fn of_reply(base_headers: &HeaderMap, reply: Reply, question: &Question) -> Self {
        let validity = match question.at_block {
            Some(_) if reply.is_final => Validity::Final,
            Some(_) => Validity::OfBlock,
            None => Validity::Newest,
        };
        let etag = reply.head.and(reply.digest).map(|digest| {
            let content = content_id(question.operation, &question.message, digest);
            match validity {
                Validity::Final => {
                    strong_tag(&content, Encoding { gzip: reply.gzipped, ..question.encoding })
                }
                Validity::Newest | Validity::OfBlock => format!("W/\"{content}\""),
            }
        });
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
        Self {
            head: reply.head,
            validity,
            etag,
            headers,
            parts: reply.parts,
            asked_at: Instant::now(),
            metrics: None,
            memory: AnswerMemory::default(),
            client: 0,
        }
    }

    /// The answer to a read, of the service's reply.
    pub(crate) fn of_read(
        base_headers: &HeaderMap,
        caching_of_newest: &HeaderValue,
        reply: Reply,
        question: &Question,
        asked_at: Instant,
        metrics: Option<Arc<OperationMetrics>>,
    ) -> Self {
        let mut answer = Self::of_reply(base_headers, reply, question);
        let caching = match answer.validity {
            Validity::Final if question.names_chain => IMMUTABLE,
            Validity::Final => FINAL,
            Validity::Newest if answer.head.is_some() => caching_of_newest.clone(),
            Validity::Newest | Validity::OfBlock => REVALIDATED,
        };
        if answer.validity == Validity::Newest && caching != REVALIDATED {
            // A shared cache must not give it to a client that wants the events of the same URL.
            answer.headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        }
        answer.headers.insert(CACHE_CONTROL, caching);
        if answer.bytes() <= MAX_COPIED {
            answer.parts = vec![answer.parts.concat().into()];
        }
        Self { asked_at, metrics, ..answer }
    }
}

/// Names the block of the store that was the newest one (J13), or as of which it was read (B2).
pub(crate) fn describe_head(headers: &mut HeaderMap, head: &Head) {
    headers.insert(X_BLOCK_HEIGHT, head.height.into());
    headers.insert(X_BLOCK_TIMESTAMP, head.time_ns.into());
}

/// Ends the strong tag of a compressed body.
const GZIP_MARK: &str = "-gzip";

/// Identifies operation, request and content: the opaque part of a weak tag (J13), which a block that does not
/// change the answer keeps. The same for every encoding of the answer and from every replica.
fn content_id(operation: &str, message: &[u8], digest: u128) -> String {
    let request = Sha256::new().chain_update(operation).chain_update([0]).chain_update(message).finalize();
    let request = request.iter().take(8).fold(0, |id, byte| (id << 8) | u64::from(*byte));
    format!("{request:016x}-{digest:032x}")
}

/// The strong tag of a final answer in one encoding (B4).
fn strong_tag(content: &str, encoding: Encoding) -> String {
    let pretty = if encoding.format == Format::PrettyJson { "-pretty" } else { "" };
    let gzip = if encoding.gzip { GZIP_MARK } else { "" };
    format!("\"{content}{pretty}{gzip}\"")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[test]
    fn a_tag_depends_on_operation_request_and_content() {
        let id = content_id("A", b"x", 7);
        assert_eq!(id, content_id("A", b"x", 7));
        for other in [
            content_id("B", b"x", 7),
            content_id("A", b"y", 7),
            content_id("Ax", b"", 7),
            content_id("A", b"x", 8),
            content_id("A", b"x", 7 | 1 << 64),
        ] {
            assert_ne!(id, other);
        }
    }

    /// The answer to a read of a reply that is final or not, compressed or not.
    fn answer(question: &Question, is_final: bool, gzipped: bool) -> Answer {
        shared_answer(question, is_final, gzipped, 0)
    }

    fn shared_answer(question: &Question, is_final: bool, gzipped: bool, shared_s: u32) -> Answer {
        let reply = Reply {
            parts: vec![Bytes::from_static(b"{}")],
            gzipped,
            head: Some(Head { height: 5, time_ns: 0 }),
            digest: Some(7),
            is_final,
        };
        Answer::of_read(
            &HeaderMap::new(),
            &caching_of_newest(shared_s),
            reply,
            question,
            Instant::now(),
            None,
        )
    }

    fn question(at_block: Option<u64>, names_chain: bool, format: Format) -> Question {
        Question { encoding: Encoding { format, gzip: true }, at_block, names_chain, ..Question::default() }
    }

    #[test]
    fn a_shared_cache_may_keep_what_follows_the_head_alone() {
        let caching = |at_block, is_final| {
            let answer = shared_answer(&question(at_block, false, Format::Json), is_final, false, 5);
            [CACHE_CONTROL, VARY].map(|name| answer.headers[name].to_str().unwrap().to_owned())
        };
        let shared = "public, max-age=0, s-maxage=5, stale-while-revalidate=5";
        assert_eq!(caching(None, false), [shared, "Accept, Accept-Encoding"], "its events have the same URL");
        assert_eq!(caching(Some(5), false), ["no-cache", "Accept-Encoding"]);
        assert_eq!(caching(Some(5), true), ["public, max-age=3600", "Accept-Encoding"]);
    }

    #[test]
    fn a_body_that_the_edge_compresses_has_the_tag_of_a_compressed_one() {
        let gzip_alone =
            HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip, identity;q=0"))]);
        let question = question(Some(5), false, Format::Json);
        let (plain, gzipped) = (answer(&question, true, false), answer(&question, true, true));
        assert_eq!(plain.tag_for(&HeaderMap::new()).as_deref(), plain.etag.as_deref());
        assert_eq!(plain.tag_for(&gzip_alone).as_deref(), gzipped.etag.as_deref());
        assert_eq!(gzipped.tag_for(&gzip_alone).as_deref(), gzipped.etag.as_deref());
        let weak = answer(&question, false, false);
        assert_eq!(weak.tag_for(&gzip_alone).as_deref(), weak.etag.as_deref());
    }
}
