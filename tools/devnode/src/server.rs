//! The RPC over HTTP/1.1 with upgrade to a websocket. Connections and bodies are limited, and every read from
//! a client has a timeout.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    accept::accept,
    call::{Answer, Body, Params, RpcError, URI_ID},
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
            let is_asked = request.uri().path() == "/websocket";
            let Some(headers) = subscription::accept(request.headers()).filter(|_| is_asked) else {
                return Ok::<_, Infallible>(answer(request, chain, address).await);
            };
            *upgrade.lock() = Some(hyper::upgrade::on(&mut request));
            let mut reply = Response::new(Full::default());
            *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *reply.headers_mut() = headers;
            Ok(reply)
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
        subscription::serve(upgraded, chain, address).await;
    }
}

async fn answer(request: Request<Incoming>, chain: &Chain, address: &str) -> Reply {
    let path = request.uri().path().trim_matches('/').to_owned();
    if path.is_empty() {
        return match *request.method() {
            Method::POST => posted(request.into_body(), chain, address).await,
            _ => listing(),
        };
    }
    if rpc::parameters(&path).is_none() {
        return reply(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n");
    }
    let params = Params::of_query(request.uri().query());
    let outcome = rpc::call(chain, address, &path, &params).await;
    let status = if outcome.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    json(status, &Answer::new(Some(URI_ID.into()), outcome))
}

/// Answers a POST. A failed method is an error object with HTTP status 200, as in CometBFT.
async fn posted(body: Incoming, chain: &Chain, address: &str) -> Reply {
    let body = match read(body, chain.settings().limits.body_bytes).await {
        Ok(body) if body.is_empty() => return listing(),
        Ok(body) => body,
        Err(reason) => {
            let error = RpcError::invalid_request(format!("error reading request body: {reason}"));
            return json(StatusCode::BAD_REQUEST, &Answer::new(None, Err(error)));
        }
    };
    let calls = match serde_json::from_slice(&body) {
        Ok(Body::One(call)) => vec![call],
        Ok(Body::Several(calls)) => calls,
        Err(error) => {
            let answer = Answer::new(None, Err(RpcError::parse(&error)));
            return json(StatusCode::INTERNAL_SERVER_ERROR, &answer);
        }
    };
    let mut answers = Vec::new();
    for call in calls {
        answers.extend(rpc::answer(chain, address, call).await);
    }
    match &answers[..] {
        [] => reply(StatusCode::OK, "application/json", ""),
        [answer] => json(StatusCode::OK, answer),
        answers => json(StatusCode::OK, &answers),
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

/// The list of methods, for people.
fn listing() -> Reply {
    let links: String = rpc::methods().map(|name| format!("<a href=\"/{name}\">{name}</a><br>")).collect();
    let page = format!("<html><body>Available endpoints:<br>{links}</body></html>");
    reply(StatusCode::OK, "text/html", page)
}

fn json(status: StatusCode, answer: &impl serde::Serialize) -> Reply {
    reply(status, "application/json", Answer::json(answer))
}

fn reply(status: StatusCode, form: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(form));
    reply
}
