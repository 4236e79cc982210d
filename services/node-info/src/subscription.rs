//! The node's block events, over its websocket. An event only triggers a read of the status, since it does
//! not carry the block's hash. Without a subscription the status is polled.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use mesh_chassis::Failure;
use mesh_node_rpc::NodeUrl;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    connect_async_with_config,
    tungstenite::{
        Message,
        client::IntoClientRequest,
        handshake::client::Request,
        http::{Uri, header::AUTHORIZATION},
        protocol::WebSocketConfig,
    },
};

/// Longest time for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection without an event for this long is replaced: the node may be gone without closing it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause before reconnecting.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Longest event that is read.
const MAX_EVENT_BYTES: usize = 4 << 20;

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"subscribe","params":{"query":"tm.event='NewBlockHeader'"}}"#;

/// A subscription to block events. The value, sent again at each event, is whether the node sends them.
pub(crate) struct Subscription(watch::Receiver<bool>);

impl Subscription {
    /// Subscribes, and again whenever the connection breaks, until it is dropped. Must be called inside an
    /// actix system.
    ///
    /// # Errors
    /// The address cannot be that of a websocket.
    pub(crate) fn open(node: &NodeUrl) -> Result<Self, Failure> {
        let request = handshake(node)?;
        let (sender, events) = watch::channel(false);
        actix::spawn(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = async {
                    loop {
                        if let Err(error) = listen(request.clone(), &sender).await {
                            tracing::debug!(error = error.as_ref(), "no subscription to the consensus node");
                        }
                        // The node may have ended, too.
                        sender.send_if_modified(std::mem::take);
                        sleep(RECONNECT_PAUSE).await;
                    }
                } => {}
            }
        });
        Ok(Self(events))
    }

    /// Whether the node sends events.
    pub(crate) fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the next event, or the end of the subscription. Cancel-safe; events in quick succession may
    /// count as one.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The request that opens a node's websocket.
fn handshake(node: &NodeUrl) -> Result<Request, Failure> {
    let mut parts = node.endpoint("websocket").into_parts();
    parts.scheme = Some(if node.is_tls() { "wss" } else { "ws" }.parse()?);
    let mut request = Uri::from_parts(parts)?.into_client_request()?;
    let authorization = node.authorization().map(|value| (AUTHORIZATION, value.clone()));
    request.headers_mut().extend(authorization);
    Ok(request)
}

async fn listen(request: Request, sender: &watch::Sender<bool>) -> Result<(), Failure> {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_EVENT_BYTES))
        .max_frame_size(Some(MAX_EVENT_BYTES));
    let connecting = connect_async_with_config(request, Some(limits), true);
    let (mut socket, _) = timeout(CONNECT_TIMEOUT, connecting).await??;
    timeout(CONNECT_TIMEOUT, socket.send(Message::text(SUBSCRIBE))).await??;
    while let Some(message) = timeout(IDLE_TIMEOUT, socket.next()).await? {
        if let Message::Text(text) = message? {
            if let Event { error: Some(error) } = serde_json::from_str(&text)? {
                return Err(format!("the node ends the subscription: {error}").into());
            }
            sender.send_replace(true);
        }
    }
    Ok(())
}

/// A message of the node: an event, the reply to the subscription, or why there is none any more.
#[derive(Deserialize)]
struct Event {
    error: Option<Value>,
}
