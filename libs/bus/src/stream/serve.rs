//! Answering a stream: its opening is a request like any other, a pull is answered by chunks on the connection for
//! chunks. Both are bounded, kept to their deadline, cancelled and drained with all other requests.

use std::rc::Rc;

use actix::{Actor, Context, Handler};
use async_nats::{HeaderMap, Message, Subject};
use futures_util::StreamExt;
use mesh_problem::{MALFORMED, NOT_MAPPED, Problem};
use prost::Message as _;
use proto_msgs::StreamingOperation;

use super::{
    Bulk, Chunks, MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD, Open, Piece, Pull,
    wire::{CHUNK, Chunk, FROM_BYTE, Mark, PULL, PullHeader},
};
use crate::{
    answering::RequestScope,
    connection::Bus,
    replying::Rendered,
    serve::{Router, Served, Work},
};

impl<A: Actor<Context = Context<A>>> Router<A> {
    /// Adds one streaming operation.
    #[must_use]
    pub fn on_stream<R: StreamingOperation>(mut self) -> Self
    where
        A: Handler<Open<R>> + Handler<Pull<R>>,
    {
        debug_assert_eq!(R::WORKLOAD, self.workload, "{} belongs to another workload", R::NAME);
        self.metrics.begin(R::NAME);
        let (actor, bus, mailbox) = (self.actor.clone(), self.bus.clone(), self.metrics.mailbox.clone());
        let work: Work = Rc::new(move |message: Message, _| {
            let (actor, bus, mailbox) = (actor.clone(), bus.clone(), mailbox.clone());
            Box::pin(async move {
                let headers = message.headers.unwrap_or_default();
                let word = |name| headers.get(name).map(async_nats::HeaderValue::as_str);
                let request = R::decode(message.payload)
                    .map_err(|error| malformed("the request does not decode").caused_by(error.to_string()))?;
                let Some(pull) = word(PULL) else {
                    let from_byte = word(FROM_BYTE).map_or(Ok(0), str::parse);
                    let from_byte = from_byte.map_err(|_| malformed("the first byte is not a number"))?;
                    let opened = actor
                        .send(Open { request, from_byte, scope: RequestScope::queued(&mailbox) })
                        .await
                        .map_err(|error| unfinished(&error))??;
                    if opened.first.len() > MAX_POSITION_BYTES {
                        return Err(unfinished(&"a position is too long"));
                    }
                    return Ok(Some(Rendered::plain(opened.encode_to_vec())));
                };
                let pull = PullHeader::read(pull).ok_or_else(|| malformed("the pull does not decode"))?;
                let reply_to = message.reply.ok_or_else(|| malformed("a pull needs a reply subject"))?;
                let PullHeader { position, budget, .. } = pull.clone();
                let chunks = actor
                    .send(Pull { request, position, budget, scope: RequestScope::queued(&mailbox) })
                    .await
                    .map_err(|error| unfinished(&error))??;
                send(bus.bulk().await.map_err(|error| unfinished(&error))?, &reply_to, pull, chunks).await?;
                Ok(None)
            })
        });
        self.operations.push(Served::by(R::NAME, work));
        self.has_streams = true;
        self
    }
}

/// Sends the chunks of a pull, as fast as the connection takes them.
async fn send(bulk: &Bulk, reply_to: &Subject, pull: PullHeader, mut chunks: Chunks) -> Result<(), Problem> {
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
        let then = chunks.next_positions.iter().take(MAX_POSITIONS_AHEAD).cloned().collect();
        let chunk = Chunk { stream, index, position, after, then, mark, bytes };
        let mut headers = HeaderMap::new();
        headers.insert(CHUNK, chunk.write());
        let sent = bulk.client.publish_with_headers(reply_to.clone(), headers, chunk.bytes).await;
        sent.map_err(|error| Problem::unavailable("a chunk could not be sent").caused_by(error.to_string()))?;
        if chunk.mark != Mark::More {
            return Ok(());
        }
        position = chunk.after;
    }
    Ok(())
}

/// Where an answer to this message goes out: a problem must not overtake the chunks before it.
pub(crate) fn answers_by<'a>(bus: &'a Bus, headers: Option<&HeaderMap>) -> &'a async_nats::Client {
    let is_pull = headers.is_some_and(|headers| headers.get(PULL).is_some());
    match bus.bulk_if_connected().filter(|_| is_pull) {
        Some(bulk) => &bulk.client,
        None => &bus.shared.client,
    }
}

fn malformed(message: &str) -> Problem {
    Problem::invalid(MALFORMED, message)
}

fn unfinished(cause: &dyn std::fmt::Display) -> Problem {
    Problem::internal(NOT_MAPPED, "the service could not finish this request").caused_by(cause.to_string())
}
