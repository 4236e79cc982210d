//! An HTTP answer, read completely.

use std::{fmt, time::Duration};

use bytes::Bytes;
use reqwest::header::HeaderMap;

use crate::secrets;

const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// An HTTP answer.
#[derive(Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers as received; a compressed body stays compressed.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Sends a request and reads its answer.
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        Self::try_to(request).await.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    pub(crate) async fn try_to(request: reqwest::RequestBuilder) -> Result<Self, reqwest::Error> {
        Self::try_of(request.send().await?).await
    }

    /// The answer of a response whose body is not read yet.
    pub async fn of(response: reqwest::Response) -> Self {
        Self::try_of(response).await.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    async fn try_of(response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await?;
        secrets::assert_not_in("an answer", &body);
        secrets::assert_not_in("an answer's head", format!("{headers:?}").as_bytes());
        Ok(Self { status, headers, body })
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("not text ({error}): {self:?}"))
    }

    /// The value of a header, when it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether the server closes the connection after this answer.
    pub fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl fmt::Debug for Answer {
    /// Shows the beginning of the body as text, for messages of failed assertions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(2000)]);
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("length", &self.body.len())
            .field("body", &shown)
            .finish()
    }
}

/// An HTTP client without proxy, redirects and decompression.
pub fn http_client() -> reqwest::Client {
    mesh_chassis::install_tls_provider();
    let builder = reqwest::Client::builder().no_proxy().no_gzip().tls_certs_only([]).timeout(ANSWER_WITHIN);
    let client = builder.redirect(reqwest::redirect::Policy::none()).build();
    client.unwrap_or_else(|error| panic!("cannot make an HTTP client: {error}"))
}
