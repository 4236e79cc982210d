//! What an answer says of how its request was understood (J11, B3): `X-Ignored`, `Preference-Applied`, and `Vary`
//! where a cache has to tell requests apart by `Prefer`.

use http::{HeaderMap, HeaderName, HeaderValue};
use warp::reply::Response;

use crate::{
    decode::preferences::{Handling, PREFER},
    respond::answer::vary,
};

const X_IGNORED: HeaderName = HeaderName::from_static("x-ignored");
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How a request is handled, as far as it has been decoded.
#[derive(Debug, Default)]
pub(crate) struct HandlingNote {
    handling: Handling,
    /// Whether the request has any preference.
    has_preference: bool,
    /// The value of `X-Ignored`.
    pub(crate) ignored: Option<HeaderValue>,
    /// The seconds of the preferred wait, if the request has waited for its block.
    pub(crate) waited: Option<u64>,
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
        let is_strict = self.handling == Handling::Strict;
        let applied = match self.waited.map(wait_applied) {
            Some(wait) if is_strict => HeaderValue::try_from(format!("handling=strict, {wait}")).ok(),
            Some(wait) => HeaderValue::try_from(wait).ok(),
            None => is_strict.then(|| HeaderValue::from_static("handling=strict")),
        };
        if let Some(applied) = applied {
            headers.insert(PREFERENCE_APPLIED, applied);
        }
        match &self.ignored {
            Some(ignored) => write_ignored(headers, ignored.clone()),
            None if self.has_preference => vary(headers, "Prefer"),
            None => {}
        }
    }
}

/// `Preference-Applied` of a wait of so many seconds.
pub(crate) fn wait_applied(seconds: u64) -> String {
    format!("wait={seconds}")
}

/// Names what was ignored. With strict handling the same request would be refused, also to a cache.
pub(crate) fn write_ignored(headers: &mut HeaderMap, ignored: HeaderValue) {
    headers.insert(X_IGNORED, ignored);
    vary(headers, "Prefer");
}
