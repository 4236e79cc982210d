//! A client of watches (contract section 10): server-sent events as a browser reads them.

use std::time::Duration;

use mesh_testbed::Answer;
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::time::{error::Elapsed, timeout};

use crate::client::MeshClient;

/// Longest wait for an event that has to come.
const WITHIN: Duration = Duration::from_secs(20);

/// A block of lines of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The id, if it has one.
    pub id: Option<u64>,
    /// Whether it clears the last event id: an id without a value.
    pub clears_id: bool,
    /// The name; empty in a block without an event.
    pub name: String,
    /// The data.
    pub data: String,
    /// The comment, without its colon.
    pub comment: Option<String>,
    /// The reconnect delay, milliseconds.
    pub retry: Option<u64>,
}

impl Event {
    /// The data as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn of_block(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" => event.comment = Some(value.to_owned()),
                "id" => (event.id, event.clears_id) = (value.parse().ok(), value.is_empty()),
                "event" => value.clone_into(&mut event.name),
                "data" => event.data.push_str(value),
                "retry" => event.retry = value.parse().ok(),
                _ => panic!("an unknown field: {block}"),
            }
        }
        event
    }
}

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    response: Response,
    text: String,
}

impl Events {
    /// Opens a stream.
    ///
    /// # Errors
    /// The answer, when it is no stream.
    ///
    /// # Panics
    /// When there is no answer.
    pub async fn open(client: &MeshClient, path: &str, headers: &[(&str, &str)]) -> Result<Self, Answer> {
        let request = client.request(Method::GET, path).header("accept", "text/event-stream");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap_or_else(|error| panic!("{path}: {error}"));
        if response.headers().get("content-type").is_none_or(|kind| kind != "text/event-stream") {
            return Err(Answer::of(response).await);
        }
        Ok(Self { response, text: String::new() })
    }

    /// A header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next block of lines; `None` at the end.
    ///
    /// # Panics
    /// When the stream breaks off, or nothing comes in 20 s.
    pub async fn block(&mut self) -> Option<Event> {
        self.block_within(WITHIN).await.unwrap_or_else(|_| panic!("nothing comes"))
    }

    /// The next block of lines, when it comes in this time.
    ///
    /// # Errors
    /// When it does not.
    ///
    /// # Panics
    /// When the stream breaks off.
    pub async fn block_within(&mut self, within: Duration) -> Result<Option<Event>, Elapsed> {
        timeout(within, async {
            loop {
                if let Some((block, rest)) = self.text.split_once("\n\n") {
                    let event = Event::of_block(block);
                    self.text = rest.to_owned();
                    return Some(event);
                }
                let chunk =
                    self.response.chunk().await.unwrap_or_else(|error| panic!("it breaks off: {error}"));
                let Some(chunk) = chunk else {
                    assert_eq!(self.text, "", "it ends within an event");
                    return None;
                };
                self.text.push_str(std::str::from_utf8(&chunk).unwrap_or_else(|error| panic!("{error}")));
            }
        })
        .await
    }

    /// The next event, after any comments.
    ///
    /// # Panics
    /// When the stream ends, or nothing comes in 20 s.
    pub async fn event(&mut self) -> Event {
        loop {
            let block = self.block().await.unwrap_or_else(|| panic!("the stream ends"));
            if !block.name.is_empty() {
                return block;
            }
        }
    }
}
