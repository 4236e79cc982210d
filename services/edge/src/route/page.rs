//! A page of the edge: content that is the same for all clients, with its encodings, entity tag and headers.

use std::{
    io::{self, Read, Write},
    sync::OnceLock,
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
use serde::Serialize;
use sha2::{Digest, Sha256};
use warp::reply::Response;

use crate::{
    admission::head::HttpError,
    decode::{accept, query::Parameters},
    respond::{answer, gzip::MIN_GZIPPED},
};

pub(super) const JSON: &str = "application/json";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const PICTURE: &str = "image/svg+xml";

/// A page that is the same for all clients.
#[derive(Debug)]
pub(crate) struct Page {
    /// The name in metrics and logs.
    pub(crate) name: &'static str,
    /// Whether it is exempt from the rate limit.
    pub(crate) is_vital: bool,
    pub(super) media_type: &'static str,
    pub(super) caching: Caching,
    pub(super) etag: String,
    /// `Content-Security-Policy`.
    pub(super) policy: Option<HeaderValue>,
    /// Where a page that has moved is: it is answered by a redirect, without content.
    pub(super) location: Option<HeaderValue>,
    pub(super) content: Content,
    /// The indented form (J12), of JSON alone.
    pub(super) pretty: Option<Content>,
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

/// A body, plain and gzipped.
#[derive(Debug)]
pub(super) struct Content {
    /// Made of the gzipped form when a client needs it: most accept gzip, and all pages are in memory.
    plain: OnceLock<Bytes>,
    pub(super) gzipped: Option<Bytes>,
}

impl Page {
    pub(super) fn json(name: &'static str, value: &impl Serialize) -> io::Result<Self> {
        let page = Self::plain(name, JSON, &serde_json::to_vec(value)?)?;
        Ok(Self { pretty: Some(Content::of(&serde_json::to_vec_pretty(value)?)?), ..page })
    }

    pub(super) fn plain(name: &'static str, media_type: &'static str, bytes: &[u8]) -> io::Result<Self> {
        Ok(Self::of(name, media_type, bytes, Content::of(bytes)?))
    }

    pub(super) fn gzipped(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let content = Content { plain: OnceLock::new(), gzipped: Some(Bytes::from_static(bytes)) };
        Self::of(name, media_type, bytes, content)
    }

    /// A page of a format that is compressed by itself.
    pub(super) fn uncompressed(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let content = Content { plain: OnceLock::from(Bytes::from_static(bytes)), gzipped: None };
        Self::of(name, media_type, bytes, content)
    }

    fn of(name: &'static str, media_type: &'static str, bytes: &[u8], content: Content) -> Self {
        Self {
            name,
            is_vital: false,
            media_type,
            caching: Caching::Revalidate,
            etag: etag(bytes),
            policy: None,
            location: None,
            content,
            pretty: None,
        }
    }

    /// The answer to one client: 304 when it has the page already.
    ///
    /// # Errors
    /// When `?pretty` is malformed, or `If-Match` does not match.
    pub(crate) fn answer(&self, query: &str, request: &HeaderMap) -> Result<Response, HttpError> {
        if let Some(location) = &self.location {
            return Ok(redirect(location));
        }
        let content = match &self.pretty {
            Some(pretty) if Parameters::parse(query)?.pretty()? => pretty,
            _ => &self.content,
        };
        let gzipped = content.gzipped.clone().filter(|_| accept::accepts_gzip(request));
        let is_cacheable = self.caching != Caching::NoStore;
        answer::check_if_match(request, is_cacheable.then_some(self.etag.as_str()))?;
        let is_unchanged = is_cacheable && answer::is_unchanged(request, &self.etag);
        let mut response = match &gzipped {
            _ if is_unchanged => Response::default(),
            Some(gzipped) => Response::new(gzipped.clone().into()),
            None => Response::new(content.plain().into()),
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
        if let Some(etag) = is_cacheable.then(|| self.etag.parse().ok()).flatten() {
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
    fn of(bytes: &[u8]) -> io::Result<Self> {
        if bytes.len() < MIN_GZIPPED {
            return Ok(Self { plain: OnceLock::from(Bytes::copy_from_slice(bytes)), gzipped: None });
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes)?;
        Ok(Self { plain: OnceLock::new(), gzipped: Some(encoder.finish()?.into()) })
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
