//! The requests of a load, and what their answers must be.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use mesh_testbed::http1::RawAnswer;

/// A class of requests.
pub(crate) struct RequestClass {
    /// Percentage of all requests.
    pub(crate) percent: u32,
    /// Address of the edge.
    pub(crate) edge: SocketAddr,
    /// The requests, of which each time one is chosen at random.
    pub(crate) requests: Vec<ReadRequest>,
}

/// A request, and the judge of its answers.
#[derive(Clone)]
pub(crate) struct ReadRequest {
    /// Path and query.
    pub(crate) path: Arc<str>,
    pub(crate) judge: Arc<dyn Judge>,
}

impl From<String> for ReadRequest {
    fn from(path: String) -> Self {
        Self { path: path.into(), judge: Arc::<Vec<String>>::default() }
    }
}

/// Judges the successful answers to one path.
pub(crate) trait Judge: Send + Sync {
    /// Additional header lines of the next request.
    fn headers(&self) -> String {
        String::new()
    }

    /// Why an answer with status 200 or 304 is wrong, if it is. Gets the request's additional header lines and
    /// when it was sent.
    fn wrong(&self, answer: &RawAnswer, headers: &str, sent: Instant) -> Option<String>;
}

/// Texts that every answer must contain.
impl Judge for Vec<String> {
    fn wrong(&self, answer: &RawAnswer, _: &str, _: Instant) -> Option<String> {
        if answer.status == 304 {
            return Some("a 304 that was not asked for".to_owned());
        }
        let text = std::str::from_utf8(&answer.body).unwrap_or_default();
        let missing = self.iter().find(|part| !text.contains(part.as_str()))?;
        Some(format!("{missing} is missing in {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_contains_all_that_it_must() {
        let must_contain = vec!["\"id\":\"7\"".to_owned(), "\"amount\":\"49\"".to_owned()];
        let wrong = |must_contain: &Vec<String>, status, body: &str| {
            let answer = RawAnswer { status, headers: Vec::new(), body: body.into() };
            must_contain.wrong(&answer, "", Instant::now())
        };
        assert_eq!(wrong(&must_contain, 200, r#"{"amount":"49","id":"7"}"#), None);
        let missing = wrong(&must_contain, 200, r#"{"amount":"490","id":"7"}"#);
        assert!(missing.is_some_and(|what| what.starts_with(&must_contain[1])));
        assert!(wrong(&must_contain, 200, "").is_some());
        assert_eq!(wrong(&Vec::new(), 200, "anything"), None);
        assert!(wrong(&Vec::new(), 304, "").is_some());
    }
}
