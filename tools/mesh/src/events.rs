//! The server-sent events of a watched read, parsed like a browser's `EventSource`.

use std::{cell::Cell, pin::Pin, rc::Rc, time::Duration};

use futures_util::{Stream, StreamExt as _, stream};
use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use sse_stream::{Error, Sse, SseByteStream};

use crate::gateway::{Gateway, GatewayError, LONGEST_BODY};

/// A gateway sends a comment at least every 15 s: after a longer silence the connection is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

const EVENT_STREAM: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A state of a watched read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `answer` or `problem`, with `-INDEX` on a stream of several reads.
    pub(crate) name: String,
    /// The newest height received on the stream.
    pub(crate) height: Option<u64>,
    /// A body on one line.
    pub(crate) data: String,
}

/// An open stream of events.
pub(crate) struct Events<'a> {
    blocks: Pin<Box<dyn Stream<Item = Result<Sse, Error>> + 'a>>,
    /// Bytes since the last event.
    unread: Rc<Cell<usize>>,
    /// The newest height received, from which a reconnection resumes.
    pub(crate) height: Option<u64>,
    /// The reconnect delay of the gateway's `retry` line.
    pub(crate) retry: Option<Duration>,
}

impl<'a> Events<'a> {
    /// Starts to watch a read, or resumes after the last height received.
    pub(crate) async fn open(
        gateway: &'a Gateway,
        url: &str,
        last_height: Option<u64>,
    ) -> Result<Self, GatewayError> {
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(EVENT_STREAM))]);
        headers.extend(last_height.map(|height| (LAST_EVENT_ID, height.into())));
        let response = gateway.download(url, headers).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !media_type.unwrap_or_default().starts_with(EVENT_STREAM) {
            let why = "answers without events: only reads can be watched, and an older gateway watches none";
            return Err(GatewayError::Foreign(gateway.through_proxy(format!("{url} {why}"))));
        }
        Ok(Self::of_bytes(body(gateway, response), last_height))
    }

    fn of_bytes<B: bytes::Buf + 'a>(
        bytes: impl Stream<Item = Result<B, GatewayError>> + 'a,
        height: Option<u64>,
    ) -> Self {
        let unread = Rc::new(Cell::new(0));
        let counted = unread.clone();
        let bytes = bytes.map(move |piece| {
            let piece = piece?;
            counted.set(counted.get() + piece.remaining());
            match counted.get() > LONGEST_BODY {
                true => Err(GatewayError::Foreign("an event is too long; check --url".to_owned())),
                false => Ok(piece),
            }
        });
        Self { blocks: Box::pin(SseByteStream::new(Box::pin(bytes))), unread, height, retry: None }
    }

    /// The next event; `None` when the gateway has ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, GatewayError> {
        while let Some(block) = self.blocks.next().await {
            let block = block.map_err(|error| match error {
                Error::Body(cause) => cause
                    .downcast::<GatewayError>()
                    .map_or_else(|cause| GatewayError::broken(cause.to_string()), |error| *error),
                error => GatewayError::Foreign(format!("the events cannot be read ({error}); check --url")),
            })?;
            self.unread.set(0);
            self.retry = block.retry.map(Duration::from_millis).or(self.retry);
            match block.id.as_deref() {
                // The store was reset: its heights start again.
                Some("") => self.height = None,
                Some(id) => self.height = id.parse().ok().or(self.height),
                None => {}
            }
            if let Some(data) = block.data.filter(|data| !data.is_empty()) {
                let name = block.event.unwrap_or_default();
                return Ok(Some(Event { name, height: self.height, data }));
            }
        }
        Ok(None)
    }
}

fn body(gateway: &Gateway, response: Response) -> impl Stream<Item = Result<bytes::Bytes, GatewayError>> {
    stream::try_unfold(response, async |mut response| {
        Ok(gateway.next(&mut response).await?.map(|piece| (piece, response)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of these pieces, and the pause that is wished for.
    async fn events(pieces: Vec<&[u8]>) -> (Vec<Event>, Option<Duration>) {
        let mut events = Events::of_bytes(stream::iter(pieces.into_iter().map(Ok)), None);
        let mut all = Vec::new();
        while let Some(event) = events.next().await.unwrap() {
            all.push(event);
        }
        (all, events.retry)
    }

    #[tokio::test]
    async fn events_are_the_same_wherever_their_bytes_are_split() {
        let text = "\u{feff}retry: 1000\n: 4\n\nid: 5\nevent: answer\ndata: {\"a\":\"\u{e9}\"}\n\n\
            event:problem\ndata: 1\ndata\ndata:2\nretry: soon\nid: 6\0\nfoo\n\nid: 7\n\nevent: answer\n\ndata: x\n\n\
            id:\n\ndata: y\n\ndata: cut off";
        let all = [
            ("answer", Some(5), "{\"a\":\"\u{e9}\"}"),
            ("problem", Some(5), "1\n\n2"),
            ("", Some(7), "x"),
            ("", None, "y"),
        ];
        let all =
            all.map(|(name, height, data)| Event { name: name.to_owned(), height, data: data.to_owned() });
        let expected = (all.to_vec(), Some(Duration::from_secs(1)));
        for line_end in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', line_end);
            for length in 1..=text.len() {
                let found = events(text.as_bytes().chunks(length).collect()).await;
                assert_eq!(found, expected, "{line_end:?} by {length}");
            }
        }
    }

    #[tokio::test]
    async fn an_event_without_end_and_a_broken_one_are_errors() {
        let endless = stream::repeat_with(|| Ok(&[b'x'; 1 << 20][..]));
        let error = Events::of_bytes(endless, None).next().await.unwrap_err();
        assert!(matches!(&error, GatewayError::Foreign(why) if why.contains("too long")), "{error}");
        let broken = stream::iter([Err::<&[u8], _>(GatewayError::broken("reset"))]);
        let error = Events::of_bytes(broken, None).next().await.unwrap_err();
        assert!(matches!(&error, GatewayError::Unanswered { why, .. } if why == "reset"), "{error}");
    }
}
