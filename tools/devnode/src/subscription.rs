//! The RPC over a websocket: the same calls, and subscriptions to new blocks.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::{
    HeaderMap, HeaderValue,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    answers,
    call::{Answer, Posted, RpcError},
    chain::Chain,
    rpc,
};

/// Subscriptions of one client, as many as a consensus node allows.
const MOST_SUBSCRIPTIONS: usize = 5;
const PING_EVERY: Duration = Duration::from_secs(20);
/// A client that sends nothing, not even a pong, for so long is disconnected.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);
/// Timeout of a send, after which the client is disconnected.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// A client that is behind by more blocks gets the newest only.
const MOST_BLOCKS_AT_ONCE: u64 = 20;

/// The headers of the answer to a websocket upgrade; `None` when the request is no upgrade.
pub(crate) fn accept(request: &HeaderMap) -> Option<HeaderMap> {
    let has = |name, expected: &str| {
        let value = request.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(expected))
    };
    let is_upgrade =
        has(UPGRADE, "websocket") && has(CONNECTION, "upgrade") && has(SEC_WEBSOCKET_VERSION, "13");
    let key = request.get(SEC_WEBSOCKET_KEY).filter(|_| is_upgrade)?;
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    Some(headers.into_iter().collect())
}

/// The only event that there are subscriptions to.
const HEADER_QUERY: &str = "tm.event='NewBlockHeader'";

#[derive(Debug)]
struct Subscription {
    id: Value,
    query: String,
}

/// The connection of one client.
struct Client<'a> {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    subscriptions: Vec<Subscription>,
    chain: &'a Chain,
    address: &'a str,
}

/// Serves a websocket until its client disconnects.
pub(crate) async fn serve(upgraded: Upgraded, chain: &Chain, address: &str) {
    let most = Some(chain.settings().limits.body_bytes);
    let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let mut client = Client { socket, subscriptions: Vec::new(), chain, address };
    if let Err(error) = client.run().await {
        tracing::debug!(%error, "a websocket ended early");
    }
}

impl Client<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        let mut heights = self.chain.heights();
        let mut last_height = *heights.borrow_and_update();
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        let mut last_message = Instant::now();
        loop {
            tokio::select! {
                message = self.socket.next() => {
                    last_message = Instant::now();
                    match message.transpose()? {
                        None | Some(Message::Close(_)) => return Ok(()),
                        Some(Message::Text(text)) => self.answer(text.as_str()).await?,
                        Some(_) => {}
                    }
                }
                changed = heights.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let newest = *heights.borrow_and_update();
                    let is_behind = newest.saturating_sub(last_height) > MOST_BLOCKS_AT_ONCE;
                    let from = if is_behind { newest } else { last_height + 1 };
                    for height in from..=newest {
                        self.send_events(height).await?;
                    }
                    last_height = newest;
                }
                _ = pings.tick() => {
                    if last_message.elapsed() > SILENT_AT_MOST {
                        return Ok(());
                    }
                    self.send(Message::Ping(Vec::new().into())).await?;
                }
            }
        }
    }

    /// Answers one call.
    async fn answer(&mut self, text: &str) -> Result<(), Error> {
        let answer = match serde_json::from_str::<Posted>(text) {
            Err(error) => Some(Answer::new(None, Err(RpcError::parse(&error)))),
            Ok(mut call) => match call.method.as_str() {
                "subscribe" | "unsubscribe" | "unsubscribe_all" => {
                    let id = call.id.take();
                    id.map(|id| Answer::new(Some(id.clone()), self.subscribed(&mut call, id)))
                }
                _ => rpc::answer(self.chain, self.address, call).await,
            },
        };
        match answer {
            Some(answer) => self.send(text_of(&answer)).await,
            None => Ok(()),
        }
    }

    /// Subscribes, or ends subscriptions.
    fn subscribed(&mut self, call: &mut Posted, id: Value) -> Result<Value, RpcError> {
        let failed = |what: &str| Err(RpcError::internal(&what));
        if call.method == "unsubscribe_all" {
            self.subscriptions.clear();
            return Ok(json!({}));
        }
        let query = call.params(&["query"])?.text("query")?;
        let exists = self.subscriptions.iter().any(|subscription| subscription.query == query);
        if call.method == "unsubscribe" {
            self.subscriptions.retain(|subscription| subscription.query != query);
            return if exists { Ok(json!({})) } else { failed("subscription not found") };
        }
        if query.split_whitespace().collect::<String>() != HEADER_QUERY {
            return failed(&format!("a development node sends {HEADER_QUERY} only"));
        }
        if exists {
            return failed("already subscribed");
        }
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return failed(&format!("max_subscriptions_per_client {MOST_SUBSCRIPTIONS} reached"));
        }
        self.subscriptions.push(Subscription { id, query });
        Ok(json!({}))
    }

    /// Sends the events of a block to all subscriptions.
    async fn send_events(&mut self, height: u64) -> Result<(), Error> {
        if self.subscriptions.is_empty() {
            return Ok(());
        }
        // No event for a height that the chain has not, nor when the file cannot be read.
        let Ok(Some(block)) = self.chain.block(height).await else { return Ok(()) };
        let chain_id = &self.chain.settings().network.chain_id;
        let messages: Vec<Message> = self
            .subscriptions
            .iter()
            .map(|Subscription { id, query }| {
                let data = answers::new_block_header(chain_id, &block);
                let events = json!({"tm.event": ["NewBlockHeader"]});
                let result = json!({"query": query, "data": data, "events": events});
                text_of(&Answer::new(Some(id.clone()), Ok(result)))
            })
            .collect();
        for message in messages {
            self.send(message).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        match timeout(SEND_WITHIN, self.socket.send(message)).await {
            Ok(sent) => sent,
            Err(_) => Err(Error::ConnectionClosed),
        }
    }
}

fn text_of(answer: &Answer) -> Message {
    Message::text(String::from_utf8(Answer::json(answer)).unwrap_or_default())
}
