//! What an answer says of how its request was understood (J11): `X-Ignored`, `Preference-Applied`, and `Vary`
//! where a cache has to tell requests apart by `Prefer`.

use http::{HeaderMap, HeaderName, HeaderValue, header::VARY};
use warp::reply::Response;

use crate::decode::preferences::{Handling, PREFER};

const X_IGNORED: HeaderName = HeaderName::from_static("x-ignored");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How a request is handled, as far as it has been decoded.
#[derive(Debug, Default)]
pub(crate) struct HandlingNote {
    handling: Handling,
    /// Whether the request has any preference.
    has_preference: bool,
    /// The value of `X-Ignored`.
    pub(crate) ignored: Option<HeaderValue>,
}

impl HandlingNote {
    /// Reads the preference of a request that is about to be decoded. An answer before that says nothing.
    pub(crate) fn read(&mut self, headers: &HeaderMap) -> Handling {
        self.has_preference = headers.contains_key(PREFER);
        if self.has_preference {
            self.handling = Handling::of_headers(headers);
        }
        self.handling
    }

    /// Writes the headers of the answer.
    pub(crate) fn write(&self, response: &mut Response) {
        let headers = response.headers_mut();
        if self.handling == Handling::Strict {
            headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static("handling=strict"));
        }
        match &self.ignored {
            Some(ignored) => write_ignored(headers, ignored.clone()),
            None if self.has_preference => vary(headers),
            None => {}
        }
    }
}

/// Names what was ignored. With strict handling the same request would be refused, also to a cache.
pub(crate) fn write_ignored(headers: &mut HeaderMap, ignored: HeaderValue) {
    headers.insert(X_IGNORED, ignored);
    vary(headers);
}

fn vary(headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("Prefer"));
}
