//! The RPC over a websocket: the same calls, and subscriptions that are told of each new block.

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
/// Who does not even answer to that is gone.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);
/// Who takes nothing for so long is given up.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// Who fell behind by more blocks than these hears of the newest only.
const MOST_BLOCKS_AT_ONCE: u64 = 20;

/// The headers of an answer that makes a connection a websocket; nothing when it is not asked for one.
pub(crate) fn accept(asked: &HeaderMap) -> Option<HeaderMap> {
    let has = |name, wanted: &str| {
        let value = asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(wanted))
    };
    let is_asked =
        has(UPGRADE, "websocket") && has(CONNECTION, "upgrade") && has(SEC_WEBSOCKET_VERSION, "13");
    let key = asked.get(SEC_WEBSOCKET_KEY).filter(|_| is_asked)?;
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    Some(headers.into_iter().collect())
}

/// What of a new block is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Block,
    Header,
}

impl Event {
    fn of_query(query: &str) -> Option<Self> {
        match query.split_whitespace().collect::<String>().as_str() {
            "tm.event='NewBlock'" => Some(Self::Block),
            "tm.event='NewBlockHeader'" => Some(Self::Header),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Block => "NewBlock",
            Self::Header => "NewBlockHeader",
        }
    }
}

#[derive(Debug)]
struct Subscription {
    id: Value,
    query: String,
    event: Event,
}

/// One client.
struct Client<'a> {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    subscriptions: Vec<Subscription>,
    chain: &'a Chain,
    address: &'a str,
}

/// Serves a websocket until its client goes.
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
        let mut told = *heights.borrow_and_update();
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                message = self.socket.next() => {
                    heard = Instant::now();
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
                    let from = if newest.saturating_sub(told) > MOST_BLOCKS_AT_ONCE { newest } else { told + 1 };
                    for height in from..=newest {
                        self.tell(height).await?;
                    }
                    told = newest;
                }
                _ = pings.tick() => {
                    if heard.elapsed() > SILENT_AT_MOST {
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
        let is_held = self.subscriptions.iter().any(|held| held.query == query);
        if call.method == "unsubscribe" {
            self.subscriptions.retain(|held| held.query != query);
            return if is_held { Ok(json!({})) } else { failed("subscription not found") };
        }
        let Some(event) = Event::of_query(&query) else {
            return failed(
                "a development node tells of tm.event='NewBlock' and tm.event='NewBlockHeader' only",
            );
        };
        if is_held {
            return failed("already subscribed");
        }
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return failed(&format!("max_subscriptions_per_client {MOST_SUBSCRIPTIONS} reached"));
        }
        self.subscriptions.push(Subscription { id, query, event });
        Ok(json!({}))
    }

    /// Tells all subscriptions of a block.
    async fn tell(&mut self, height: u64) -> Result<(), Error> {
        if self.subscriptions.is_empty() {
            return Ok(());
        }
        // A height that the chain has left out, and a file that cannot be read, are no news.
        let Ok(Some(held)) = self.chain.held(height).await else { return Ok(()) };
        let chain_id = &self.chain.settings().network.chain_id;
        let messages: Vec<Message> = self
            .subscriptions
            .iter()
            .map(|subscription| {
                let Subscription { id, query, event } = subscription;
                let data = match event {
                    Event::Block => answers::new_block(chain_id, &held),
                    Event::Header => answers::new_block_header(chain_id, &held),
                };
                let result = json!({"query": query, "data": data, "events": {"tm.event": [event.name()]}});
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
