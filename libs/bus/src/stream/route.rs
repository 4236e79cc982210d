//! Serving streams: an opening is a request like any other, a pull is answered over the connection for
//! chunks. Limits, deadlines, cancellation and draining apply as to all requests.

use std::rc::Rc;

use actix::{Actor, Context, Handler};
use async_nats::{Client, HeaderMap, Message, Subject};
use futures_util::StreamExt;
use mesh_problem::{MALFORMED, Problem};
use prost::Message as _;
use proto_msgs::StreamingOperation;

use super::{
    messages::{Chunks, Open, Piece, Pull},
    position::{MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD},
    wire::{Chunk, Mark, PullHeader},
};
use crate::{
    answer::RequestScope,
    encoding::Format,
    headers::{CHUNK, FROM_BYTE, PULL},
    reply::Rendered,
    router::{OperationFn, Router, unfinished},
};

impl<A: Actor<Context = Context<A>>> Router<A> {
    /// Adds one streaming operation.
    #[must_use]
    pub fn on_stream<R: StreamingOperation>(mut self) -> Self
    where
        A: Handler<Open<R>> + Handler<Pull<R>>,
    {
        debug_assert_eq!(R::WORKLOAD, self.workload, "{} belongs to another workload", R::NAME);
        let (actor, bus, mailbox) = (self.actor.clone(), self.bus.clone(), self.metrics.mailbox.clone());
        let run: OperationFn = Rc::new(move |message: Message, _| {
            let (actor, bus, mailbox) = (actor.clone(), bus.clone(), mailbox.clone());
            Box::pin(async move {
                let headers = message.headers.unwrap_or_default();
                let word = |name| headers.get(name).map(async_nats::HeaderValue::as_str);
                let request = R::decode(message.payload)
                    .map_err(|error| malformed("the request does not decode").caused_by(error.to_string()))?;
                let Some(pull) = word(PULL) else {
                    let from_byte = word(FROM_BYTE).map_or(Ok(0), str::parse);
                    let from_byte = from_byte.map_err(|_| malformed("the first byte is not a number"))?;
                    let scope = RequestScope::queued(&mailbox, Format::Protobuf);
                    let opened = actor.send(Open { request, from_byte, scope }).await;
                    let opened = opened.map_err(|error| unfinished(&error))??;
                    if opened.first.len() > MAX_POSITION_BYTES {
                        return Err(unfinished(&"a position is too long"));
                    }
                    return Ok(Some(Rendered::plain(opened.encode_to_vec())));
                };
                let pull = PullHeader::read(pull).ok_or_else(|| malformed("the pull does not decode"))?;
                let reply_to = message.reply.ok_or_else(|| malformed("a pull needs a reply subject"))?;
                let PullHeader { position, budget, .. } = pull.clone();
                let scope = RequestScope::queued(&mailbox, Format::Protobuf);
                let chunks = actor.send(Pull { request, position, budget, scope }).await;
                let chunks = chunks.map_err(|error| unfinished(&error))??;
                let connection = bus.chunk_connection().await.map_err(|error| unfinished(&error))?;
                send(&connection.client, &reply_to, pull, chunks).await?;
                Ok(None)
            })
        });
        let queue = self.line.add(self.limits.per_operation.into());
        self.add(R::NAME, run, Some(queue));
        self.has_streams = true;
        self
    }
}

/// Sends the chunks of a pull, as fast as the connection takes them.
async fn send(
    client: &Client,
    reply_to: &Subject,
    pull: PullHeader,
    mut chunks: Chunks,
) -> Result<(), Problem> {
    let PullHeader { stream, budget, mut position } = pull;
    for index in 0.. {
        let piece = match index < budget.chunks {
            true => chunks.pieces.next().await.transpose()?,
            false => return Ok(()),
        };
        let (bytes, after, mark) = match piece {
            Some(Piece { bytes, after, end: Some(totals) }) => (bytes, after, Mark::End(totals)),
            Some(Piece { bytes, after, end: None }) => (bytes, after, Mark::More),
            None if index == 0 => return Err(unfinished(&"a pull gave nothing")),
            None => (Default::default(), position.clone(), Mark::Stop),
        };
        if bytes.len() > budget.chunk_bytes() {
            return Err(unfinished(&"a chunk is too long"));
        }
        let next_positions = chunks.next_positions.iter().take(MAX_POSITIONS_AHEAD).cloned().collect();
        let chunk = Chunk { stream, index, position, after, next_positions, mark, bytes };
        let mut headers = HeaderMap::new();
        headers.insert(CHUNK, chunk.write());
        let sent = client.publish_with_headers(reply_to.clone(), headers, chunk.bytes).await;
        sent.map_err(|error| Problem::unavailable("a chunk could not be sent").caused_by(error.to_string()))?;
        if chunk.mark != Mark::More {
            return Ok(());
        }
        position = chunk.after;
    }
    Ok(())
}

fn malformed(message: &str) -> Problem {
    Problem::invalid(MALFORMED, message)
}
