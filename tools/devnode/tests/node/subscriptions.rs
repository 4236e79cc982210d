//! Subscriptions to blocks over a websocket.

use std::future::ready;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use super::fixture::{Fixture, PATIENCE};

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(fixture: &Fixture) -> Self {
        let url = format!("ws://{}/websocket", fixture.node.address());
        Self(timeout(PATIENCE, connect_async(url)).await.unwrap().unwrap().0)
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let text = (&mut self.0)
            .filter_map(|message| ready(message.unwrap().into_text().ok().filter(|text| !text.is_empty())));
        let mut text = std::pin::pin!(text);
        serde_json::from_str(&timeout(PATIENCE, text.next()).await.unwrap().unwrap()).unwrap()
    }

    async fn call(&mut self, id: u32, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&call.to_string()).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

#[tokio::test]
async fn subscribers_get_each_block_in_order() {
    let fixture = Fixture::new().await;
    let mut socket = Socket::open(&fixture).await;
    let header = socket.call(1, "subscribe", json!({"query": "tm.event = 'NewBlockHeader'"})).await;
    assert_eq!(header["result"], json!({}));
    let tx = fixture.transaction(1, "order");
    fixture.send("broadcast_tx_sync", &tx).await;
    for height in [11, 12] {
        assert_eq!(fixture.blocks(1).await, height);
        let news = socket.next().await;
        let result = &news["result"];
        assert_eq!((&news["id"], &result["query"]), (&json!(1), &json!("tm.event = 'NewBlockHeader'")));
        assert_eq!(result["data"]["type"], "tendermint/event/NewBlockHeader");
        let block = fixture.call("block", json!({"height": height})).await["result"]["block"].clone();
        assert_eq!(result["data"]["value"]["header"], block["header"]);
        assert_eq!(result["events"], json!({"tm.event": ["NewBlockHeader"]}));
    }
}

#[tokio::test]
async fn invalid_calls_are_answered() {
    let fixture = Fixture::new().await;
    let mut socket = Socket::open(&fixture).await;
    assert_eq!(socket.call(1, "status", json!({})).await["error"]["code"], -32601);
    let other = socket.call(2, "subscribe", json!({"query": "tm.event='Tx'"})).await;
    assert!(other["error"]["data"].as_str().unwrap().contains("NewBlock"), "{other}");
    socket.send("{").await;
    assert_eq!(socket.next().await["error"]["code"], -32700);
    // Subscriptions are refused over HTTP.
    assert_eq!(fixture.call("subscribe", json!({"query": "x"})).await["error"]["code"], -32601);
    assert_eq!(fixture.get("/websocket").await.0, 404);
}

#[tokio::test]
async fn a_websocket_ends_with_its_node() {
    let fixture = Fixture::new().await;
    let mut socket = Socket::open(&fixture).await;
    socket.call(1, "health", json!({})).await;
    let _fixture = fixture.restart().await;
    let end = timeout(PATIENCE, socket.0.next()).await.unwrap();
    assert!(end.is_none_or(|message| message.is_err()));
}
