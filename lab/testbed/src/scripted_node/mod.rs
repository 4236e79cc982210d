//! A consensus node whose blocks its owner decides: the RPC of CometBFT as far as blocks are read, over HTTP, and
//! a message for each new block over the websocket.

mod block;
mod chain;

use std::{convert::Infallible, io, sync::Arc};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, handshake::server::create_response_with_body, protocol::Role},
};

pub use self::{
    block::{Block, Version, event, hash, status, trade},
    chain::{Chain, State},
};

/// What a node serves.
pub trait NodeContent: Send + Sync + 'static {
    /// The whole reply to `status`, or to `block` and `block_results` of a height, as [`reply`] writes it.
    ///
    /// # Errors
    /// The text of the node's error.
    fn reply(&self, method: &str, height: u64) -> Result<Bytes, String>;

    /// The height of the newest block, when the node sends events.
    fn heights(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// A reply of the RPC with a result.
pub fn reply(result: &Value) -> Bytes {
    json!({"jsonrpc": "2.0", "id": -1, "result": result}).to_string().into()
}

/// Checks that a node has the block of a height.
///
/// # Errors
/// The text of CometBFT's error.
pub fn check_height(height: u64, lowest: u64, latest: u64) -> Result<(), String> {
    if height > latest {
        let text = "must be less than or equal to the current blockchain height";
        return Err(format!("height {height} {text} {latest}"));
    }
    if height < lowest {
        return Err(format!("height {height} is not available, lowest height is {lowest}"));
    }
    Ok(())
}

/// Answers requests until it is dropped.
///
/// # Errors
/// A connection cannot be accepted.
pub async fn serve(listener: TcpListener, node: Arc<dyn NodeContent>) -> io::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let node = Arc::clone(&node);
                async move { Ok::<_, Infallible>(answer(request, &node)) }
            });
            // A client that closes its connection during an answer is no error of the node's.
            let _ =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
    }
}

fn answer(request: Request<Incoming>, node: &Arc<dyn NodeContent>) -> Response<Full<Bytes>> {
    let method = request.uri().path().trim_start_matches('/');
    if let ("websocket", Some(heights)) = (method, node.heights())
        && let Ok(accepted) = create_response_with_body(&request, Full::default)
    {
        tokio::spawn(announce(request, heights));
        return accepted;
    }
    let height = request.uri().query().and_then(|query| query.strip_prefix("height="));
    let height = height.and_then(|height| height.parse().ok()).unwrap_or(0);
    let (status, body) = match node.reply(method, height) {
        Ok(body) => (StatusCode::OK, body),
        Err(data) => {
            let error = json!({"code": -32603, "message": "Internal error", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": -1, "error": error});
            (StatusCode::INTERNAL_SERVER_ERROR, body.to_string().into())
        }
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Confirms each call, and sends a message for each new block, until the client disconnects.
async fn announce(request: Request<Incoming>, mut heights: watch::Receiver<u64>) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    loop {
        let result = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(_))) => json!({}),
                Some(Ok(_)) => continue,
                None | Some(Err(_)) => return,
            },
            changed = heights.changed() => {
                if changed.is_err() {
                    return;
                }
                let header = json!({"header": {"height": heights.borrow_and_update().to_string()}});
                json!({"data": {"type": "tendermint/event/NewBlockHeader", "value": header}})
            }
        };
        let text = json!({"jsonrpc": "2.0", "id": 0, "result": result}).to_string();
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}
