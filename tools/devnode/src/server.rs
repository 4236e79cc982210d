//! The RPC over HTTP/1.1 with upgrade to a websocket. Connections and bodies are limited, and every read from
//! a client has a timeout.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::{
    accept::accept,
    call::{self, Call, RpcError},
    chain::Chain,
    rpc, subscription,
};

/// Timeout of reading a request's head, and of its body.
const READ_WITHIN: Duration = Duration::from_secs(10);

type Reply = Response<Full<Bytes>>;

/// Serves a chain until dropped; its connections end with it.
pub(crate) async fn serve(listener: TcpListener, address: SocketAddr, chain: Chain) -> Infallible {
    let most = chain.settings().limits.connections;
    let address: Arc<str> = address.to_string().into();
    accept(listener, most, move |stream| {
        let (chain, address) = (chain.clone(), Arc::clone(&address));
        async move { connection(stream, &chain, &address).await }
    })
    .await
}

async fn connection(stream: TcpStream, chain: &Chain, address: &str) {
    // An error means a closed connection, which the next read reports.
    let _ = stream.set_nodelay(true);
    // The upgraded connection, if the request asks for a websocket.
    let upgrade = Mutex::new(None);
    let service = service_fn(|mut request| {
        let upgrade = &upgrade;
        async move {
            let accepted = match request.uri().path() {
                "/websocket" => create_response_with_body(&request, Full::default).ok(),
                _ => None,
            };
            Ok::<_, Infallible>(match accepted {
                Some(reply) => {
                    *upgrade.lock() = Some(hyper::upgrade::on(&mut request));
                    reply
                }
                None => answer(request, chain, address).await,
            })
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_WITHIN)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection to the development node ended early");
    }
    let upgrade = upgrade.into_inner();
    if let Some(upgrade) = upgrade
        && let Ok(upgraded) = upgrade.await
    {
        subscription::serve(upgraded, chain).await;
    }
}

async fn answer(request: Request<Incoming>, chain: &Chain, address: &str) -> Reply {
    let method = request.uri().path().trim_matches('/').to_owned();
    if method.is_empty() {
        return posted(request.into_body(), chain, address).await;
    }
    let (id, outcome) = match Call::of_uri(&method, request.uri().query()) {
        Ok(call) => (call.id.clone(), rpc::execute(chain, address, &call).await),
        Err(error) => (Value::Null, Err(error)),
    };
    let status = match &outcome {
        Ok(_) => StatusCode::OK,
        Err(error) if *error == RpcError::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    reply(status, &id, &outcome)
}

/// Answers a POST. A failed method is an error object with HTTP status 200, as in CometBFT.
async fn posted(body: Incoming, chain: &Chain, address: &str) -> Reply {
    let refused = |status, error| reply(status, &Value::Null, &Err(error));
    let body = match read(body, chain.settings().limits.body_bytes).await {
        Ok(body) => body,
        Err(reason) => {
            let reason = format!("error reading request body: {reason}");
            return refused(StatusCode::BAD_REQUEST, RpcError::invalid_request(reason));
        }
    };
    match serde_json::from_slice::<Call>(&body) {
        Ok(call) => reply(StatusCode::OK, &call.id, &rpc::execute(chain, address, &call).await),
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, RpcError::parse(&error)),
    }
}

async fn read(body: Incoming, most: usize) -> Result<Bytes, String> {
    match timeout(READ_WITHIN, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err("http: request body too large".to_owned())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("i/o timeout".to_owned()),
    }
}

fn reply(status: StatusCode, id: &Value, outcome: &Result<Value, RpcError>) -> Reply {
    let mut reply = Response::new(Full::from(call::answer(id, outcome).to_string()));
    *reply.status_mut() = status;
    let form = header::HeaderValue::from_static("application/json");
    reply.headers_mut().insert(header::CONTENT_TYPE, form);
    reply
}
