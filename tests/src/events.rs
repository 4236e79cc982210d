//! A client of watches (contract section 10): server-sent events as a browser reads them.

use std::time::Duration;

pub use mesh_testbed::events::Event;
use mesh_testbed::{Answer, events::EventReader};
use reqwest::{Method, Response};
use tokio::time::{error::Elapsed, timeout};

use crate::client::MeshClient;

/// Longest wait for an event that has to come.
const WITHIN: Duration = Duration::from_secs(20);

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    response: Response,
    reader: EventReader,
}

impl Events {
    /// Opens a stream.
    ///
    /// # Errors
    /// The answer, when it is no stream.
    pub async fn open(client: &MeshClient, path: &str, headers: &[(&str, &str)]) -> Result<Self, Answer> {
        let request = client.request(Method::GET, path).header("accept", "text/event-stream");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap_or_else(|error| panic!("{path}: {error}"));
        if response.headers().get("content-type").is_none_or(|kind| kind != "text/event-stream") {
            return Err(Answer::of(response).await);
        }
        Ok(Self { response, reader: EventReader::default() })
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
    pub async fn block_within(&mut self, within: Duration) -> Result<Option<Event>, Elapsed> {
        timeout(within, async {
            loop {
                let event = self.reader.next_event().unwrap_or_else(|error| panic!("{error}"));
                if event.is_some() {
                    return event;
                }
                let chunk =
                    self.response.chunk().await.unwrap_or_else(|error| panic!("it breaks off: {error}"));
                let Some(chunk) = chunk else {
                    assert!(!self.reader.is_torn(), "it ends within an event");
                    return None;
                };
                self.reader.push(&chunk);
            }
        })
        .await
    }

    /// The next event, after any comments.
    pub async fn event(&mut self) -> Event {
        loop {
            let block = self.block().await.unwrap_or_else(|| panic!("the stream ends"));
            if !block.name.is_empty() {
                return block;
            }
        }
    }
}
