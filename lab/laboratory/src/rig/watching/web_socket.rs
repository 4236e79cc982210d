//! Watches over a WebSocket.

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, timeout},
};
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{
        Error, Message,
        client::ClientRequestBuilder,
        protocol::{WebSocketConfig, frame::coding::CloseCode},
    },
};
use tonic::Code;

use super::watchers::{SILENCE, Shared, StreamEnd};
use crate::{
    rig::clients::{connection::KEY, download_results::Refusal},
    watches::Event,
};

/// Size of a connection's buffers, bytes.
const BUFFER_BYTES: usize = 4 << 10;

/// A text frame of an edge. Its id is the index of a read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame<'a> {
    id: &'a str,
    height: Option<&'a str>,
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
    #[serde(borrow)]
    problem: Option<&'a RawValue>,
    /// Why the read is not watched.
    error: Option<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    code: i32,
    message: String,
}

impl Shared {
    /// Opens a WebSocket, watches on it, and records its events; returns how it ended.
    pub(super) async fn follow_over_web_socket(
        &self,
        index: usize,
        mut turn: Option<SemaphorePermit<'_>>,
    ) -> Result<StreamEnd, StreamEnd> {
        let broken = |error: Error| StreamEnd::Broken(format!("over a WebSocket: {error}"));
        let stream = self.dial(index).await?;
        let (client, last_height) = self.stream_of(index);
        let uri = "ws://laboratory/watch".parse().map_err(|_| StreamEnd::Malformed("a URI".to_owned()))?;
        let request = ClientRequestBuilder::new(uri).with_header("Authorization", format!("Bearer {KEY}"));
        let config = WebSocketConfig::default().read_buffer_size(BUFFER_BYTES).write_buffer_size(0);
        self.count(1, 0);
        let opening = timeout(SILENCE, client_async_with_config(request, stream, Some(config))).await;
        let mut socket = match opening.map_err(|_| StreamEnd::Silent)? {
            Ok((socket, _)) => socket,
            Err(Error::Http(answer)) => {
                self.count(0, 1);
                let message = answer.body().as_deref().unwrap_or_default();
                return Ok(StreamEnd::Refused(Refusal {
                    status: answer.status().as_u16(),
                    has_retry_after: answer.headers().contains_key("retry-after"),
                    message: String::from_utf8_lossy(message).into_owned(),
                }));
            }
            Err(error) => return Err(broken(error)),
        };
        self.count(0, 1);
        self.open(index);
        for (read, path) in self.watches[client].reads.iter().enumerate() {
            let mut frame = json!({ "id": read.to_string(), "watch": &**path });
            if let Some(height) = last_height {
                frame["after"] = height.to_string().into();
            }
            socket.send(Message::text(frame.to_string())).await.map_err(broken)?;
        }
        loop {
            let next = timeout(SILENCE, socket.next()).await.map_err(|_| StreamEnd::Silent)?;
            let at = Instant::now();
            match next {
                None => return Err(StreamEnd::Broken("a WebSocket ends without a close frame".to_owned())),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok(Message::Text(text))) => {
                    if let Some(event) = event(&text)? {
                        self.record(index, event, at)?;
                        turn.take();
                    }
                }
                Some(Ok(Message::Close(close))) => {
                    // Sends the answer to the close frame.
                    let _ = timeout(SILENCE, socket.next()).await;
                    return Ok(match close {
                        Some(close) if close.code == CloseCode::Away => StreamEnd::Regular,
                        other => StreamEnd::Broken(format!("a WebSocket is closed with {other:?}")),
                    });
                }
                Some(Ok(_)) => {}
            }
        }
    }
}

/// The event of a frame; `None` for a sign of life.
fn event(text: &str) -> Result<Option<Event>, StreamEnd> {
    let malformed = || StreamEnd::Malformed(format!("no frame of a watch: {text}"));
    let frame: Frame<'_> = serde_json::from_str(text).map_err(|_| malformed())?;
    let read = frame.id.parse().map_err(|_| malformed())?;
    let height = frame.height.map(str::parse).transpose().map_err(|_| malformed())?;
    let event = |data: &RawValue| Some(Event { read, height, data: data.get().to_owned() });
    match (height, frame.answer, frame.problem, frame.error) {
        (Some(_), Some(answer), None, None) => Ok(event(answer)),
        (None, None, Some(problem), None) => Ok(event(problem)),
        (None, None, None, Some(Refused { code, message })) => {
            let status = match Code::from(code) {
                Code::Unavailable => 503,
                Code::ResourceExhausted => 429,
                Code::DeadlineExceeded => 504,
                _ => 400,
            };
            Err(StreamEnd::Refused(Refusal { status, has_retry_after: true, message }))
        }
        (Some(_), None, None, None) => Ok(None),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_contract_names_is_an_event() {
        let state = |height, data: &str| Ok(Some(Event { read: 3, height, data: data.to_owned() }));
        assert_eq!(event(r#"{"id":"3","height":"7","answer":{"a": 1}}"#), state(Some(7), r#"{"a": 1}"#));
        assert_eq!(event(r#"{"id":"3","problem":{}}"#), state(None, "{}"));
        assert_eq!(event(r#"{"id":"3","height":"7"}"#), Ok(None));
        for malformed in [
            r#"{"id":"a","height":"7","answer":{}}"#,
            r#"{"id":"3","answer":{}}"#,
            r#"{"id":"3","height":"7","problem":{}}"#,
            r#"{"id":"3","error":{}}"#,
            "{}",
        ] {
            assert!(matches!(event(malformed), Err(StreamEnd::Malformed(_))), "{malformed}");
        }
        let refused = event(r#"{"id":"3","error":{"code":14,"message":"later","details":[]}}"#);
        assert!(matches!(refused, Err(StreamEnd::Refused(refusal)) if refusal.is_temporary()));
    }
}
