//! Subscriptions to new blocks over a websocket.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    answers,
    call::{self, Call, RpcError},
    chain::Chain,
};

const PING_EVERY: Duration = Duration::from_secs(20);
/// Timeout of a send, after which the client is disconnected.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// The only event that there are subscriptions to.
const HEADER_QUERY: &str = "tm.event='NewBlockHeader'";

struct Client<'a> {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    chain: &'a Chain,
    /// The call that subscribed, and its query.
    subscription: Option<(Value, String)>,
}

/// Serves a websocket until its client disconnects.
pub(crate) async fn serve(upgraded: Upgraded, chain: &Chain) {
    let most = Some(chain.settings().limits.body_bytes);
    let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    if let Err(error) = (Client { socket, chain, subscription: None }).run().await {
        tracing::debug!(%error, "a websocket ended early");
    }
}

impl Client<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        let mut heights = self.chain.application().heights();
        let mut last_height = *heights.borrow_and_update();
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        loop {
            tokio::select! {
                message = self.socket.next() => match message.transpose()? {
                    None | Some(Message::Close(_)) => return Ok(()),
                    Some(Message::Text(text)) => self.answer(text.as_str()).await?,
                    Some(_) => {}
                },
                Ok(()) = heights.changed() => {
                    let newest = *heights.borrow_and_update();
                    for height in last_height + 1..=newest {
                        self.send_event(height).await?;
                    }
                    last_height = newest;
                }
                _ = pings.tick() => self.send(Message::Ping(Vec::new().into())).await?,
            }
        }
    }

    async fn answer(&mut self, text: &str) -> Result<(), Error> {
        let (id, outcome) = match serde_json::from_str::<Call>(text) {
            Ok(call) => (call.id.clone(), self.subscribe(&call)),
            Err(error) => (Value::Null, Err(RpcError::parse(&error))),
        };
        self.send(Message::text(call::answer(&id, &outcome).to_string())).await
    }

    fn subscribe(&mut self, call: &Call) -> Result<Value, RpcError> {
        if call.method != "subscribe" {
            return Err(RpcError::METHOD_NOT_FOUND);
        }
        let query = call.text("query")?;
        if query.split_whitespace().collect::<String>() != HEADER_QUERY {
            return Err(RpcError::internal(&format!("a development node sends {HEADER_QUERY} only")));
        }
        self.subscription = Some((call.id.clone(), query.to_owned()));
        Ok(json!({}))
    }

    async fn send_event(&mut self, height: u64) -> Result<(), Error> {
        let Some((id, query)) = &self.subscription else { return Ok(()) };
        // No event when the file cannot be read.
        let Ok(Some(block)) = self.chain.application().block(height).await else { return Ok(()) };
        let data = answers::new_block_header(self.chain.application().chain_id(), &block);
        let result = json!({"query": query, "data": data, "events": {"tm.event": ["NewBlockHeader"]}});
        let event = call::answer(id, &Ok(result));
        self.send(Message::text(event.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        match timeout(SEND_WITHIN, self.socket.send(message)).await {
            Ok(sent) => sent,
            Err(_) => Err(Error::ConnectionClosed),
        }
    }
}
