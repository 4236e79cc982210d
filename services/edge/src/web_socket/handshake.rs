//! The opening handshake (RFC 6455, section 4.2), and what an accepted one is served with.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
};
use mesh_chassis::list_header::{lines, pieces};
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use warp::reply::Response;

use crate::{
    admission::{ClientContext, head::HttpError},
    config::Config,
    decode::preferences::Handling,
    respond::answer,
    watch::registry::Watches,
};

const WEB_SOCKET: &str = "websocket";

/// The one version of the protocol.
const VERSION: &str = "13";

/// Length of a decoded `Sec-WebSocket-Key`, bytes.
const KEY_BYTES: usize = 16;

/// Whether a request asks to speak WebSocket.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, WEB_SOCKET)
}

/// What the watches of an accepted connection are begun with; an extension of the 101.
#[derive(Clone)]
pub(crate) struct Upgrade {
    pub(super) client: ClientContext,
    /// How unknown parameters of all reads are handled.
    pub(super) handling: Handling,
    pub(super) watches: Arc<Watches>,
}

impl Upgrade {
    /// What an accepted connection is served with.
    pub(crate) fn new(client: &ClientContext, handling: Handling, watches: &Arc<Watches>) -> Self {
        Self { client: client.clone(), handling, watches: Arc::clone(watches) }
    }

    /// Resolves when the connection has to end, with the reason.
    pub(super) fn ending(&self) -> impl Future<Output = Problem> + Send + 'static + use<> {
        self.watches.ending(self.client.key.as_ref().map(|key| Arc::clone(&key.key)))
    }

    /// Answers the handshake: 101, or 426 to another version of the protocol.
    ///
    /// # Errors
    /// For a malformed handshake, an origin that is not allowed, and bytes before the answer.
    pub(crate) fn answer(
        self,
        headers: &HeaderMap,
        config: &Config,
        is_pretty: bool,
    ) -> Result<Response, Problem> {
        if single(headers, &SEC_WEBSOCKET_VERSION) != Some(VERSION) {
            return Ok(other_version(is_pretty));
        }
        let malformed = |reason: &str| Problem::invalid(MALFORMED, reason);
        if !has_token(headers, &CONNECTION, "upgrade") {
            return Err(malformed("`Upgrade: websocket` needs `Connection: Upgrade`"));
        }
        let key = single(headers, &SEC_WEBSOCKET_KEY)
            .filter(|key| BASE64_STANDARD.decode(key).is_ok_and(|key| key.len() == KEY_BYTES))
            .ok_or_else(|| malformed("Sec-WebSocket-Key must be 16 bytes in base64"))?;
        if !answer::allows_origin(config, headers) {
            let problem = Problem::new(Code::PermissionDenied, NOT_MAPPED, "the origin is not allowed");
            return Err(problem);
        }
        // Strict HTTP/1 has taken them for a request.
        let connection = &self.client.connection;
        if connection.is_receiving() || connection.refusal().is_some() {
            return Err(malformed("frames are sent after the answer to the handshake"));
        }
        let mut response = switching(StatusCode::SWITCHING_PROTOCOLS, Response::default());
        if let Ok(accept) = HeaderValue::try_from(derive_accept_key(key.as_bytes())) {
            response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

fn other_version(is_pretty: bool) -> Response {
    let problem = Problem::invalid(NOT_MAPPED, "only version 13 of WebSocket is supported");
    let problem = problem.with_inner("Sec-WebSocket-Version: 13");
    let status = StatusCode::UPGRADE_REQUIRED;
    let refusal = answer::error(&HttpError::new(status, problem), is_pretty);
    let mut response = switching(status, refusal);
    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
    response
}

/// Names the protocol to switch to.
fn switching(status: StatusCode, mut response: Response) -> Response {
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(WEB_SOCKET));
    response
}

/// The value of a header that is given once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.to_str().ok()?.trim())
}

/// Whether a list has this word, in letters of either case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let mut words = lines(headers, name).flat_map(|line| pieces(line, b','));
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}
