//! The client of a gateway that `export`, `get`, `tx` and `watch` share: addresses of operations, answers, and their errors.

use std::{collections::HashMap, fmt, io, time::Duration};

use bytes::Bytes;
use clap::Args;
use mesh_node_rpc::retry_after;
use mesh_problem::{Problem, sources};
use proto_msgs::{Contract, Operation};
use reqwest::{
    Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::{
    failure::{Failure, cannot},
    proxy::{is_this_machine, proxy_of},
};

const CONNECT: Duration = Duration::from_secs(10);
/// Limit of a body that is not a download, and of an event, bytes.
pub(crate) const LONGEST_BODY: usize = 64 << 20;

/// With this a gateway refuses a parameter that it does not know instead of answering another question: it may
/// be older than this program (RFC 7240).
pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
const STRICT: HeaderValue = HeaderValue::from_static("handling=strict");

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Why a gateway gave no answer that can be used.
#[derive(Debug)]
pub(crate) enum GatewayError {
    /// There is no answer, or a broken one.
    Unanswered { why: String, proxy: Option<String> },
    Status {
        status: StatusCode,
        retry_after: Option<Duration>,
        /// Its body, when that is a gateway's.
        problem: Option<Problem>,
        /// The proxy that the request went through, which may have answered in place of the gateway.
        proxy: Option<String>,
    },
    /// The answer is none of a gateway.
    Foreign(String),
    /// The answer is another address, which the client does not follow.
    Redirect(String),
}

impl GatewayError {
    /// Whether the gateway has certainly not done what was requested: a refusal, 501 or 503 with its own body, or
    /// a status with which a proxy refuses before it forwards. Any other answer leaves that open.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Status { status, problem: Some(_), .. } => {
                status.is_client_error() || matches!(status.as_u16(), 501 | 503)
            }
            Self::Status { status, problem: None, .. } => matches!(status.as_u16(), 403 | 407 | 429),
            Self::Redirect(_) => true,
            Self::Unanswered { .. } | Self::Foreign(_) => false,
        }
    }

    /// An answer that is broken, for this reason.
    pub(crate) fn broken(why: impl Into<String>) -> Self {
        Self::Unanswered { why: why.into(), proxy: None }
    }

    /// What to do about a gateway that gave no answer.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Unanswered { proxy: Some(_), .. } | Self::Status { proxy: Some(_), .. } => {
                "check the proxy of the environment, or add the host to NO_PROXY"
            }
            _ => "start it with `mesh up`, or check --url",
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unanswered { .. } => true,
            Self::Status { status, .. } => matches!(status.as_u16(), 408 | 429 | 502..=504),
            Self::Foreign(_) | Self::Redirect(_) => false,
        }
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { why, proxy: Some(proxy) } => write!(f, "{why}, through {proxy}"),
            Self::Unanswered { why, proxy: None } | Self::Foreign(why) | Self::Redirect(why) => {
                f.write_str(why)
            }
            Self::Status { status, problem: None, proxy: None, .. } => write!(f, "HTTP {status}"),
            Self::Status { status, problem: None, proxy: Some(proxy), .. } => {
                write!(f, "HTTP {status}, through {proxy}")
            }
            Self::Status { status: StatusCode::UNAUTHORIZED, problem: Some(problem), .. } => {
                write!(f, "{}; give a key with MESH_API_KEY or --api-key", reason(problem))
            }
            Self::Status { problem: Some(problem), .. } => f.write_str(&reason(problem)),
        }
    }
}

impl std::error::Error for GatewayError {}

/// The message of a problem with its detail.
pub(crate) fn reason(problem: &Problem) -> String {
    let detail = problem.details.first().cloned().unwrap_or_default();
    match detail.inner.as_str() {
        "" => detail.message,
        inner => format!("{} ({inner})", detail.message),
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct GatewayArgs {
    /// The gateway
    #[arg(long, value_name = "BASE", default_value = DEFAULT_URL, value_parser = base_url)]
    pub(crate) url: Url,
    /// This client's key, where the gateway has given it one
    #[arg(long, value_name = "KEY", env = "MESH_API_KEY", hide_env_values = true, value_parser = bearer)]
    api_key: Option<HeaderValue>,
}

impl GatewayArgs {
    pub(crate) fn at(self, url: Url) -> Self {
        Self { url, ..self }
    }

    /// The option that names this gateway in a command, after a space; empty for the default one.
    pub(crate) fn option(&self) -> String {
        match self.url.as_str().trim_end_matches('/') {
            DEFAULT_URL => String::new(),
            base => format!(" --url {base}"),
        }
    }
}

fn base_url(text: &str) -> Result<Url, String> {
    let wrong = || {
        "write it as http://host:port or https://host, with a path when the gateway is below one".to_owned()
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    let is_plain = url.has_host() && is_anonymous && url.query().is_none() && url.fragment().is_none();
    if ["http", "https"].contains(&url.scheme()) && is_plain { Ok(url) } else { Err(wrong()) }
}

fn bearer(key: &str) -> Result<HeaderValue, String> {
    let key = key.trim();
    if key.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| "it is no key".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[derive(Debug)]
pub(crate) struct Gateway {
    client: Client,
    base: String,
    patience: Duration,
    proxy: Option<String>,
}

impl Gateway {
    /// A gateway whose answers, and pieces of answers, may take so long.
    pub(crate) fn new(
        args: &GatewayArgs,
        patience: Duration,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let base = &args.url;
        let (client, proxy) = match is_this_machine(base) {
            true => (Client::builder().no_proxy(), None),
            false => (Client::builder(), proxy_of(base)),
        };
        // The system's certificates are read for `https` only.
        let client = if base.scheme() == "https" { client } else { client.tls_certs_only([]) };
        let headers = args.api_key.iter().map(|key| (AUTHORIZATION, key.clone())).collect();
        let client = client.connect_timeout(CONNECT).read_timeout(patience).default_headers(headers);
        let client = configure(client).build().map_err(|error| cannot("make requests", &error))?;
        Ok(Self { client, base: base.as_str().trim_end_matches('/').to_owned(), patience, proxy })
    }

    pub(crate) fn url(&self, operation: &str) -> String {
        let mut operations = Contract::get().operations().iter();
        let row = operations.find(|row| row.name == operation);
        format!("{}{}", self.base, row.map(|row| row.template()).unwrap_or_default())
    }

    /// Gets a URL and parses the answer, which has these fields.
    pub(crate) async fn get<R: DeserializeOwned>(
        &self,
        url: &str,
        fields: &[&str],
    ) -> Result<R, GatewayError> {
        self.parsed(self.read(url), url, fields).await
    }

    /// Posts a request to its operation, once, and parses the answer, which has these fields.
    pub(crate) async fn post<O>(&self, request: &O, fields: &[&str]) -> Result<O::Reply, GatewayError>
    where
        O: Operation<Reply: DeserializeOwned> + Serialize,
    {
        let url = self.url(O::NAME);
        self.parsed(self.client.post(&url).json(request), &url, fields).await
    }

    /// Gets a URL with further headers, and returns the answer as text.
    pub(crate) async fn text(&self, url: &str, headers: HeaderMap) -> Result<String, GatewayError> {
        let response = self.download(url, headers).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if media_type.is_some_and(|media_type| media_type.starts_with("text/event-stream")) {
            return Err(GatewayError::Foreign(format!(
                "{url} is a stream of events; follow it with `mesh watch`"
            )));
        }
        let body = self.body(response).await?;
        String::from_utf8(body).map_err(|error| match error.as_bytes().starts_with(b"PK") {
            true => GatewayError::Foreign(format!("{url} is a ZIP; load it with `mesh export`")),
            false => self.foreign(url),
        })
    }

    /// Gets a URL with further headers. Any answer but a success is an error.
    pub(crate) async fn download(&self, url: &str, headers: HeaderMap) -> Result<Response, GatewayError> {
        self.send(self.read(url).headers(headers)).await
    }

    /// The next bytes of a body; `None` at its end.
    pub(crate) async fn next(&self, response: &mut Response) -> Result<Option<Bytes>, GatewayError> {
        let late = || format!("nothing came for {} s", self.patience.as_secs());
        response.chunk().await.map_err(|error| self.unanswered(&error, late))
    }

    fn read(&self, url: &str) -> RequestBuilder {
        self.client.get(url).header(PREFER, STRICT)
    }

    /// Sends a request and parses the answer. A gateway writes each field, but parsing fills missing ones: without `fields`,
    /// any server's JSON object would be an answer.
    async fn parsed<R: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        url: &str,
        fields: &[&str],
    ) -> Result<R, GatewayError> {
        let body = self.body(self.send(request).await?).await?;
        let found: HashMap<String, IgnoredAny> = serde_json::from_slice(&body).unwrap_or_default();
        let is_reply = fields.iter().all(|field| found.contains_key(*field));
        serde_json::from_slice(&body).ok().filter(|_| is_reply).ok_or_else(|| self.foreign(url))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, GatewayError> {
        let late = || format!("no answer for {} s", self.patience.as_secs());
        let response = request.send().await.map_err(|error| self.unanswered(&error, late))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if let Some(to) = self.redirected(&response) {
            let why = format!("{} redirects to {to}; give that with --url", self.base);
            return Err(GatewayError::Redirect(why));
        }
        let after = retry_after(response.headers());
        let body = self.body(response).await.ok();
        let problem = body.and_then(|body| serde_json::from_slice(&body).ok());
        let retry_after = after.map(|seconds| Duration::from_secs(seconds.into()));
        let proxy = self.proxy.clone();
        Err(GatewayError::Status { status, retry_after, problem, proxy })
    }

    /// The base to which an answer redirects. After 303 the request may have been executed.
    fn redirected(&self, response: &Response) -> Option<String> {
        let moved = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
        let to = response.headers().get(LOCATION).filter(|_| moved)?.to_str().ok()?;
        let to = response.url().join(to).ok()?.to_string();
        let path = response.url().as_str().strip_prefix(&self.base)?;
        Some(to.strip_suffix(path).unwrap_or(&to).to_owned())
    }

    /// Names the timeout, else the innermost cause: that of the system or the protocol; and the proxy.
    fn unanswered(&self, error: &reqwest::Error, late: impl FnOnce() -> String) -> GatewayError {
        let is_late = error.is_timeout() && !error.is_connect();
        let root = || sources(error).last().map_or_else(|| error.to_string(), ToString::to_string);
        if speaks_otherwise(error) {
            let why = self.through_proxy(root());
            let advice = match why.contains("certificate") {
                true => {
                    "SSL_CERT_FILE names the certificate of its authority; a certificate that signs itself must be no authority's (basicConstraints CA:FALSE)"
                }
                false => "check http or https, and the port of --url",
            };
            return GatewayError::Foreign(format!(
                "{} gives no answer that can be used ({why}); {advice}",
                self.base
            ));
        }
        let why = if is_late { late() } else { root() };
        GatewayError::Unanswered { why, proxy: self.proxy.clone() }
    }

    fn foreign(&self, url: &str) -> GatewayError {
        let what = self.through_proxy("no gateway does".to_owned());
        GatewayError::Foreign(format!("{url} answers what {what}; check --url"))
    }

    pub(crate) fn through_proxy(&self, why: String) -> String {
        match &self.proxy {
            Some(proxy) => format!("{why}, through {proxy}"),
            None => why,
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, GatewayError> {
        let mut body = Vec::new();
        while let Some(piece) = self.next(&mut response).await? {
            if body.len() + piece.len() > LONGEST_BODY {
                return Err(GatewayError::Foreign("the answer is too long; check --url".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// Whether a server does not speak the protocol of the URL, or has a certificate that is not accepted: another attempt
/// does not change that.
fn speaks_otherwise(error: &reqwest::Error) -> bool {
    sources(error).any(|cause| match cause.downcast_ref::<io::Error>() {
        Some(cause) => error.is_connect() && is_of_tls(cause),
        None => cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse),
    })
}

/// Whether an error is one of rustls, which reports all of its own with this kind; the connector wraps it once more.
fn is_of_tls(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>());
    error.kind() == io::ErrorKind::InvalidData || inner.is_some_and(is_of_tls)
}

pub(crate) fn foreign(url: &str) -> GatewayError {
    GatewayError::Foreign(format!("{url} answers what no gateway does; check --url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_answers_mean_that_nothing_was_done() {
        let is_refusal = |status: u16, has_body: bool| {
            let problem = has_body.then(|| Problem::unavailable("busy"));
            let status = StatusCode::from_u16(status).unwrap();
            GatewayError::Status { status, retry_after: None, problem, proxy: None }.is_refusal()
        };
        assert!([400, 404, 408, 413, 429, 501, 503].into_iter().all(|status| is_refusal(status, true)));
        assert!([403, 407, 429].into_iter().all(|status| is_refusal(status, false)));
        assert!([500, 502, 504].into_iter().all(|status| !is_refusal(status, true)));
        assert!(
            [302, 400, 404, 408, 499, 502, 503, 504].into_iter().all(|status| !is_refusal(status, false))
        );
        for open in [GatewayError::broken(""), GatewayError::Foreign(String::new())] {
            assert!(!open.is_refusal());
        }
    }

    #[test]
    fn a_gateway_is_an_address_and_nothing_more() {
        base_url("http://h:1/below/").unwrap();
        for wrong in ["h:1", "ftp://h", "http://", "http://h/?a=b", "http://h/#a", "http://me@h", "/api"] {
            base_url(wrong).unwrap_err();
        }
    }
}
