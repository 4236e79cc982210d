//! The node's own word of each new block, over its websocket. It says only *when* to ask: a block's event
//! does not carry the block's hash. Without it, asking twice a second is what is left.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::Url;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    connect_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

/// Longest time for connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// A node says something at each block; one that says nothing for this long may be half gone.
const SILENT_AT_MOST: Duration = Duration::from_secs(30);

/// Pause before connecting anew.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest event that is read.
const EVENT_BYTES: usize = 4 << 20;

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"subscribe","params":{"query":"tm.event='NewBlockHeader'"}}"#;

/// Tells of new blocks.
pub(crate) struct Subscription(watch::Receiver<u64>);

impl Subscription {
    /// Subscribes for as long as it lives, again and again. Must be called inside an actix system.
    pub(crate) fn to(websocket: &Url) -> Self {
        let mut url = websocket.clone();
        // Another scheme of the same kind; it cannot be refused.
        let _ = url.set_scheme("ws");
        let (tell, told) = watch::channel(0);
        actix::spawn(async move {
            tokio::select! {
                () = tell.closed() => {}
                () = async {
                    loop {
                        if let Err(error) = listen(url.as_str(), &tell).await {
                            tracing::debug!(error = error.as_ref(), "no subscription to the consensus node");
                        }
                        sleep(PAUSE).await;
                    }
                } => {}
            }
        });
        Self(told)
    }

    /// Waits for the next word. Cancel-safe; several words may be one.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn listen(url: &str, tell: &watch::Sender<u64>) -> Result<(), mesh_chassis::Failure> {
    let limits =
        WebSocketConfig::default().max_message_size(Some(EVENT_BYTES)).max_frame_size(Some(EVENT_BYTES));
    let connecting = connect_async_with_config(url, Some(limits), true);
    let (mut socket, _) = timeout(CONNECT_WITHIN, connecting).await??;
    timeout(CONNECT_WITHIN, socket.send(Message::text(SUBSCRIBE))).await??;
    while let Some(message) = timeout(SILENT_AT_MOST, socket.next()).await? {
        if message?.is_text() {
            tell.send_modify(|words| *words += 1);
        }
    }
    Ok(())
}
