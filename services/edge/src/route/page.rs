//! A page of the edge: content that is the same for all clients, with its encodings, entity tag and headers. It is made
//! for the first client: most pages of most edges are never read.

use std::{
    borrow::Cow,
    io::{Read, Write},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use mesh_chassis::accept;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use warp::reply::Response;

use crate::{
    admission::head::HttpError,
    decode::query::Parameters,
    respond::{answer, gzip::MIN_GZIPPED},
};

pub(super) const JSON: &str = "application/json";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const PICTURE: &str = "image/svg+xml";

/// A page that is the same for all clients.
pub(crate) struct Page {
    /// The name in metrics and logs.
    pub(crate) name: &'static str,
    /// Whether it is exempt from the rate limit.
    pub(crate) is_vital: bool,
    pub(super) media_type: &'static str,
    pub(super) caching: Caching,
    /// `Content-Security-Policy`.
    pub(super) policy: Option<HeaderValue>,
    /// Where a page that has moved is: it is answered by a redirect, without content.
    pub(super) location: Option<HeaderValue>,
    pub(super) make: Box<dyn Fn() -> Content + Send + Sync>,
    pub(super) made: OnceLock<Content>,
}

/// How clients may cache a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// `no-store`.
    NoStore,
    /// `no-cache`: revalidated by its entity tag.
    Revalidate,
    /// `immutable`: the path changes with the content.
    Immutable,
}

/// What a page contains.
pub(super) struct Content {
    etag: String,
    pub(super) body: Body,
    /// The indented form (J12), of JSON alone.
    pretty: Option<Body>,
}

/// A body, plain and gzipped.
pub(super) struct Body {
    /// Made of the gzipped form when a client needs it.
    plain: OnceLock<Bytes>,
    pub(super) gzipped: Option<Bytes>,
}

impl Page {
    /// A page of this value as JSON.
    pub(super) fn json<T: Serialize>(
        name: &'static str,
        value: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        Self::of(name, JSON, move || {
            let value = value();
            // The keys of their maps are texts, so this does not fail.
            let plain = serde_json::to_vec(&value).unwrap_or_default();
            let pretty = serde_json::to_vec_pretty(&value).unwrap_or_default();
            Content { pretty: Some(Body::of(&pretty)), ..Content::of(&plain, Body::of(&plain)) }
        })
    }

    pub(super) fn plain(
        name: &'static str,
        media_type: &'static str,
        bytes: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        let bytes = bytes.into();
        Self::of(name, media_type, move || Content::of(&bytes, Body::of(&bytes)))
    }

    /// A path whose page is at another one, relative to it.
    pub(super) fn moved(name: &'static str, to: &'static str) -> Self {
        Self { location: Some(HeaderValue::from_static(to)), ..Self::plain(name, TEXT, b"") }
    }

    pub(super) fn gzipped(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        Self::of(name, media_type, move || {
            let body = Body { plain: OnceLock::new(), gzipped: Some(Bytes::from_static(bytes)) };
            Content::of(bytes, body)
        })
    }

    /// A page of a format that is compressed by itself.
    pub(super) fn uncompressed(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        Self::of(name, media_type, move || {
            let body = Body { plain: OnceLock::from(Bytes::from_static(bytes)), gzipped: None };
            Content::of(bytes, body)
        })
    }

    fn of(
        name: &'static str,
        media_type: &'static str,
        make: impl Fn() -> Content + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            is_vital: false,
            media_type,
            caching: Caching::Revalidate,
            policy: None,
            location: None,
            make: Box::new(make),
            made: OnceLock::new(),
        }
    }

    /// Makes the content, which takes milliseconds, on another thread.
    pub(crate) async fn prepare(self: &Arc<Self>) {
        if self.made.get().is_none() {
            let page = Arc::clone(self);
            let made = spawn_blocking(move || {
                page.content();
            });
            // If that thread panics, the answer makes it.
            let _ = made.await;
        }
    }

    pub(super) fn content(&self) -> &Content {
        self.made.get_or_init(&self.make)
    }

    /// The answer to one client: 304 when it has the page already.
    ///
    /// # Errors
    /// When `?pretty` is malformed, or `If-Match` does not match.
    pub(crate) fn answer(&self, query: &str, request: &HeaderMap) -> Result<Response, HttpError> {
        if let Some(location) = &self.location {
            return Ok(redirect(location));
        }
        let content = self.content();
        let body = match &content.pretty {
            Some(pretty) if Parameters::parse(query)?.pretty()? => pretty,
            _ => &content.body,
        };
        let gzipped = body.gzipped.clone().filter(|_| accept::accepts_gzip(request));
        let is_cacheable = self.caching != Caching::NoStore;
        answer::check_if_match(request, is_cacheable.then_some(content.etag.as_str()))?;
        let is_unchanged = is_cacheable && answer::is_unchanged(request, &content.etag);
        let mut response = match &gzipped {
            _ if is_unchanged => Response::default(),
            Some(gzipped) => Response::new(gzipped.clone().into()),
            None => Response::new(body.plain().into()),
        };
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let cache_control = match self.caching {
            Caching::NoStore => "no-store",
            Caching::Revalidate => "no-cache",
            Caching::Immutable => "public, max-age=31536000, immutable",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        if let Some(etag) = is_cacheable.then(|| content.etag.parse().ok()).flatten() {
            headers.insert(ETAG, etag);
        }
        if is_unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if gzipped.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(policy) = &self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        }
        Ok(response)
    }
}

impl Content {
    fn of(bytes: &[u8], body: Body) -> Self {
        Self { etag: etag(bytes), body, pretty: None }
    }
}

impl Body {
    fn of(bytes: &[u8]) -> Self {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(bytes).and_then(|()| encoder.finish()).ok()
        };
        match (bytes.len() >= MIN_GZIPPED).then(compress).flatten() {
            Some(gzipped) => Self { plain: OnceLock::new(), gzipped: Some(gzipped.into()) },
            None => Self { plain: OnceLock::from(Bytes::copy_from_slice(bytes)), gzipped: None },
        }
    }

    /// The plain body.
    pub(super) fn plain(&self) -> Bytes {
        let decompress = || {
            let mut plain = Vec::new();
            // A test decompresses all of them.
            let _ = GzDecoder::new(self.gzipped.as_deref().unwrap_or_default()).read_to_end(&mut plain);
            plain.into()
        };
        self.plain.get_or_init(decompress).clone()
    }
}

fn redirect(location: &HeaderValue) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, location.clone());
    response
}

/// A weak entity tag, the same for all encodings.
fn etag(bytes: &[u8]) -> String {
    format!("W/\"{}\"", digest(bytes))
}

/// The first 8 bytes of the SHA-256 in hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
