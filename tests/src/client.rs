//! An HTTP client of the mesh, as any external client is one.

use std::{io::Read as _, time::Duration};

use flate2::read::GzDecoder;
use mesh_testbed::{Answer, Mesh, http_client, retry};
use reqwest::{Body, Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A client of one mesh. Every test makes its own, because connections live as long as a test's runtime.
#[derive(Debug, Clone)]
pub struct MeshClient {
    url: String,
    client: Client,
}

impl MeshClient {
    /// A client of this mesh.
    pub fn new(mesh: &Mesh) -> Self {
        Self { url: mesh.url(), client: http_client() }
    }

    /// The address of the mesh.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Gets a path with its query.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// Gets a path until it is answered with a status.
    pub async fn await_status(&self, path: &str, status: u16) {
        self.await_answer("GET", path, &[], |answer| answer.status == status).await;
    }

    /// Repeats a request until its answer fulfils a condition.
    ///
    /// # Panics
    /// When that takes longer than 60 s.
    pub async fn await_answer(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        is_it: impl Fn(&Answer) -> bool,
    ) -> Answer {
        retry(Duration::from_secs(60), async || {
            let answer = self.send_with(method, path, headers).await;
            if is_it(&answer) { Ok(answer) } else { Err(format!("{method} {path}: {answer:?}")) }
        })
        .await
    }

    /// Waits until the history has exactly these segments: first and last height of each, in rising order.
    pub async fn until_sealed(&self, spans: &[(u64, u64)]) {
        self.until_segments(|listed| listed == spans).await;
    }

    /// Waits until the history has a segment.
    pub async fn until_first_segment(&self) {
        self.until_segments(|listed| !listed.is_empty()).await;
    }

    async fn until_segments(&self, condition: impl Fn(&[(u64, u64)]) -> bool) {
        let is_it = |answer: &Answer| {
            answer.status == 200 && listed(&answer.json()).is_some_and(|spans| condition(&spans))
        };
        self.await_answer("GET", "/api/v2/networkhistory/segments", &[], is_it).await;
    }

    /// Gets a path in the background.
    pub fn get_later(&self, path: &str) -> JoinHandle<Answer> {
        let (client, path) = (self.clone(), path.to_owned());
        tokio::spawn(async move { client.get(&path).await })
    }

    /// Gets a path with one additional header.
    pub async fn get_with(&self, path: &str, name: &str, value: &str) -> Answer {
        self.get_with_all(path, &[(name, value)]).await
    }

    /// Gets a path with these headers.
    pub async fn get_with_all(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send_with("GET", path, headers).await
    }

    /// Posts a JSON text.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.post_with(path, &[("content-type", "application/json")], body.to_owned()).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: &str, path: &str) -> Answer {
        self.send_with(method, path, &[]).await
    }

    /// Sends a request with these headers and without a body.
    pub async fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let method = method.parse().unwrap_or_else(|_| panic!("{method} is no method"));
        let request = self.request(method, path);
        Answer::to(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// Posts a body with these headers.
    pub async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let request = self.request(Method::POST, path).body(body);
        Answer::to(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// Begins a request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }
}

/// The body of a compressed answer.
pub fn unpacked(answer: &Answer) -> Vec<u8> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(&answer.body[..]).read_to_end(&mut plain);
    read.unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    plain
}

/// First and last height of the segments in a listing, the lowest first; `None` when it has another form.
fn listed(json: &Value) -> Option<Vec<(u64, u64)>> {
    let height = |segment: &Value, name: &str| segment[name].as_str()?.parse().ok();
    let span = |segment: &Value| Some((height(segment, "fromHeight")?, height(segment, "toHeight")?));
    json["segments"].as_array()?.iter().rev().map(span).collect()
}
