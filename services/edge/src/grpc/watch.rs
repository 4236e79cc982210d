//! `api.v2.Watch/Watch`: the states of a read as messages, by the rules of watching over HTTP (W9). A silent
//! stream is kept open by HTTP/2's own pings.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, future::BoxFuture, stream};
use http::HeaderMap;
use mesh_problem::{MALFORMED, Problem};
use prost_reflect::prost::Message;
use proto_msgs::v2;
use tokio::time::{Instant, sleep_until};

use crate::{
    admission::ClientContext,
    ask::call_context::CallContext,
    connection::{ConnectionState, LongLivedStream},
    decode,
    grpc::status,
    route::routes::Routes,
    watch::{
        http::{WatchedRead, last_id},
        registry::{OpenStream, Watches},
        watcher::Watcher,
    },
    wire::stalled_stream::StalledStream,
};

/// The path of the method.
pub(crate) const PATH: &str = "/api.v2.Watch/Watch";

/// Its name in metrics and logs.
pub(crate) const NAME: &str = "Watch";

/// The read that a message asks to watch.
///
/// # Errors
/// When there is no such read, or its request is malformed.
pub(super) fn read(routes: &Routes, message: &[u8]) -> Result<WatchedRead, Problem> {
    let malformed = |reason: &str, inner: &str| Err(Problem::invalid(MALFORMED, reason).with_inner(inner));
    let Ok(v2::WatchRequest { method, request }) = v2::WatchRequest::decode(message) else {
        return malformed("the message is malformed", "api.v2.WatchRequest");
    };
    let path = format!("/{}", method.trim_start_matches('/'));
    let Some(operation) = routes.rpc(&path).filter(|operation| operation.is_watchable()) else {
        return malformed("method must be a read, such as api.v2.Query/ListMarkets", &decode::quote(&method));
    };
    let request = request.unwrap_or_default();
    let name = request.type_url.rsplit('/').next().unwrap_or_default();
    if name != operation.request.full_name() && !(name.is_empty() && request.value.is_empty()) {
        return malformed("request is of another message than the method's", operation.request.full_name());
    }
    WatchedRead::new(operation, decode::from_grpc(operation, &request.value)?)
}

/// Begins to watch: the encoded messages, until the client's deadline when it has set one.
///
/// # Errors
/// What a plain call would be refused for, and when there are too many watches.
pub(super) async fn messages(
    watches: &Arc<Watches>,
    read: &WatchedRead,
    client: &ClientContext,
    metadata: &HeaderMap,
    deadline: Option<Instant>,
    context: &CallContext,
) -> Result<impl Stream<Item = Result<Vec<Bytes>, Problem>> + Send + 'static, Problem> {
    let permit = watches.permit(client)?;
    let watcher = watches.watch(&read.question, read.source, last_id(metadata), context).await?;
    let connection = &client.connection;
    let open = OpenStream::new(watches, connection, permit);
    let on_stall = open.on_stall();
    let state = Messages {
        watcher,
        ending: Box::pin(open.ending()),
        deadline,
        connection: Arc::clone(connection),
        _guards: (open, connection.mark_long_lived()),
    };
    let messages = stream::unfold(Some(state), |state| async {
        let mut state = state?;
        let message = state.next().await;
        let is_over = message.is_err();
        Some((message, (!is_over).then_some(state)))
    });
    Ok(StalledStream::new(messages, status::stalled, on_stall))
}

struct Messages {
    watcher: Watcher,
    ending: BoxFuture<'static, Problem>,
    deadline: Option<Instant>,
    connection: Arc<ConnectionState>,
    _guards: (OpenStream, LongLivedStream),
}

impl Messages {
    async fn next(&mut self) -> Result<Vec<Bytes>, Problem> {
        let Self { watcher, ending, deadline, connection, .. } = self;
        let emission = async {
            connection.until_writable().await;
            watcher.next().await
        };
        tokio::select! {
            biased;
            reason = ending => Err(reason),
            emission = emission => match emission {
                Some(emission) => Ok(emission.bytes(None)),
                None => Err(Problem::unavailable("the store was reset to an older block")),
            },
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                Err(Problem::deadline_exceeded("the time of the call is over"))
            }
        }
    }
}
