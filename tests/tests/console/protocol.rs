//! The DevTools protocol over a WebSocket: commands with their results, and events in order of arrival.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt, StreamExt, stream::SplitSink};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::{Mutex as AsyncMutex, Notify, oneshot},
    time::timeout,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

/// Time limit for a result or an event, above the duration of any step in these tests.
const WITHIN: Duration = Duration::from_secs(60);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) struct Protocol {
    sending: AsyncMutex<SplitSink<Socket, Message>>,
    next: AtomicU64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    events: Mutex<Vec<Value>>,
    event_arrived: Notify,
}

impl Protocol {
    /// Connects to the WebSocket address that a browser printed.
    pub(crate) async fn connect(url: &str) -> Self {
        // A screenshot is one message.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = connect_async_with_config(url, Some(config), true).await.unwrap();
        let (sending, mut receiving) = socket.split();
        let shared = Arc::new(Shared::default());
        let reader = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(Ok(message)) = receiving.next().await {
                let Message::Text(text) = message else { continue };
                let message: Value = serde_json::from_str(&text).unwrap();
                match message["id"].as_u64() {
                    Some(id) => {
                        if let Some(answer) = reader.waiting.lock().unwrap().remove(&id) {
                            let _ = answer.send(message);
                        }
                    }
                    None => {
                        reader.events.lock().unwrap().push(message);
                        reader.event_arrived.notify_waiters();
                    }
                }
            }
        });
        Self { sending: AsyncMutex::new(sending), next: AtomicU64::new(1), shared }
    }

    /// Sends a command to a page (or to the browser itself) and returns its result.
    pub(crate) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Value {
        let result = self.call_within(WITHIN, session, method, &params).await;
        result.unwrap_or_else(|| panic!("the browser does not answer {method} {params}"))
    }

    /// The same with a time limit of its own; `None` when it is over.
    pub(crate) async fn call_within(
        &self,
        limit: Duration,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let (answer, answered) = oneshot::channel();
        self.shared.waiting.lock().unwrap().insert(id, answer);
        self.sending.lock().await.send(Message::text(message.to_string())).await.unwrap();
        let answer = timeout(limit, answered).await.ok()?.unwrap();
        assert!(answer["error"].is_null(), "{method} {params}: {}", answer["error"]);
        Some(answer["result"].clone())
    }

    /// All events of a kind so far.
    pub(crate) fn events(&self, session: &str, method: &str) -> Vec<Value> {
        let events = self.shared.events.lock().unwrap();
        let of_kind = |event: &&Value| event["method"] == method && event["sessionId"] == session;
        events.iter().filter(of_kind).map(|event| event["params"].clone()).collect()
    }

    /// Waits for an event of the browser or of any page.
    pub(crate) async fn until(&self, method: &str, matches_event: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let event_arrived = self.shared.event_arrived.notified();
                tokio::pin!(event_arrived);
                event_arrived.as_mut().enable();
                let event = {
                    let events = self.shared.events.lock().unwrap();
                    let matches =
                        |event: &&Value| event["method"] == method && matches_event(&event["params"]);
                    events.iter().find(matches).map(|event| event["params"].clone())
                };
                if let Some(event) = event {
                    return event;
                }
                event_arrived.await;
            }
        };
        timeout(WITHIN, found).await.unwrap_or_else(|_| panic!("{method} did not come"))
    }
}
