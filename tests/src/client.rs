//! An HTTP client of the mesh, as any external client is one.

use std::time::Duration;

use mesh_testbed::{Answer, Mesh, http_client, retry};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;

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
    ///
    /// # Panics
    /// When that takes longer than 30 s.
    pub async fn await_status(&self, path: &str, status: u16) {
        retry(Duration::from_secs(30), async || {
            let answer = self.get(path).await;
            if answer.status == status { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
    }

    /// Waits until the history has exactly these segments: first and last height of each, in rising order.
    ///
    /// # Panics
    /// When that takes longer than 60 s.
    pub async fn until_sealed(&self, spans: &[(u64, u64)]) {
        self.until_segments("the history is not sealed", |listed| listed == spans).await;
    }

    /// Waits until the history has a segment.
    ///
    /// # Panics
    /// When that takes longer than 60 s.
    pub async fn until_first_segment(&self) {
        self.until_segments("nothing is sealed", |listed| !listed.is_empty()).await;
    }

    async fn until_segments(&self, otherwise: &str, condition: impl Fn(&[(u64, u64)]) -> bool) {
        retry(Duration::from_secs(60), async || {
            let answer = self.get("/api/v2/networkhistory/segments").await;
            let spans = if answer.status == 200 { listed(&answer.json()) } else { None };
            let holds = spans.is_some_and(|spans| condition(&spans));
            if holds { Ok(()) } else { Err(format!("{otherwise}: {answer:?}")) }
        })
        .await;
    }

    /// Gets a path with one additional header.
    pub async fn get_with(&self, path: &str, name: &str, value: &str) -> Answer {
        self.get_with_all(path, &[(name, value)]).await
    }

    /// Gets a path with these headers.
    pub async fn get_with_all(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::GET, path);
        Answer::to(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// Posts a JSON text.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        Answer::to(request.body(body.to_owned())).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: &str, path: &str) -> Answer {
        let method = method.parse().unwrap_or_else(|_| panic!("{method} is no method"));
        Answer::to(self.request(method, path)).await
    }

    /// Begins a request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }
}

/// First and last height of the segments in a listing, the lowest first; `None` when it has another form.
fn listed(json: &Value) -> Option<Vec<(u64, u64)>> {
    let height = |segment: &Value, name: &str| segment[name].as_str()?.parse().ok();
    let span = |segment: &Value| Some((height(segment, "fromHeight")?, height(segment, "toHeight")?));
    json["segments"].as_array()?.iter().rev().map(span).collect()
}
