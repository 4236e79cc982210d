//! Sends replies, compressed when the request accepts that and in parts when they are long, and problems.

use async_nats::{Client, HeaderMap, Subject};
use bytes::Bytes;
use mesh_problem::Problem;
use prost::Message;
use serde::Serialize;

use crate::{
    answer::{Answer, Head},
    connection::Bus,
    encoding::{Encoding, GZIP_FROM_BYTES, gzip},
    headers::{self, ReplyHeader},
    offload::offload,
};

/// Payload of one message of a long reply, bytes: below the bus's default limit of 1 MiB.
const PART_BYTES: usize = 512 << 10;

/// From this length, in bytes, a reply is rendered outside the actor's thread and takes the connection for long
/// ones.
const LONG_BYTES: usize = 32 << 10;

/// A reply in the requested encoding.
pub(crate) struct Rendered {
    body: Bytes,
    gzipped: bool,
    head: Option<Head>,
    digest: Option<u128>,
    is_final: bool,
}

impl Rendered {
    /// A reply that is sent as it is.
    pub(crate) fn plain(body: Vec<u8>) -> Self {
        Self { body: body.into(), gzipped: false, head: None, digest: None, is_final: false }
    }

    /// An answer, compressed when the request accepts that and it is long enough.
    pub(crate) async fn answer<R>(answer: Answer<R>, encoding: Encoding) -> Result<Self, Problem>
    where
        R: Message + Serialize + Send + 'static,
    {
        offload(answer.reply.encoded_len() >= LONG_BYTES, move || {
            let Answer { reply, head, is_final } = answer;
            let body = encoding.render(&reply)?;
            // Only replies with a head are compared with earlier ones.
            let digest = head.and_then(|_| encoding.digest(&reply, &body));
            let gzipped = encoding.gzip && body.len() > GZIP_FROM_BYTES;
            let body = if gzipped { gzip(&body) } else { body.into() };
            Ok(Self { body, gzipped, head, digest, is_final })
        })
        .await
    }

    /// Its length on the bus, bytes.
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }
}

/// Sends a reply.
pub(crate) async fn send(bus: &Bus, reply_to: &Subject, rendered: Rendered) {
    let Rendered { mut body, gzipped, head, digest, is_final } = rendered;
    let parts = body.len().div_ceil(PART_BYTES).max(1);
    let long = if body.len() >= LONG_BYTES { bus.long_replies().await } else { None };
    let client = long.map_or(&bus.shared.client, |long| &long.client);
    for part in 0..parts {
        let header = match part {
            0 => ReplyHeader { head, digest, gzipped, is_final, part, parts },
            _ => ReplyHeader { part, parts, ..ReplyHeader::default() },
        };
        let mut headers = HeaderMap::new();
        if let Some(header) = header.write() {
            headers.insert(headers::REPLY, header);
        }
        let piece = body.split_to(body.len().min(PART_BYTES));
        if let Err(error) = client.publish_with_headers(reply_to.clone(), headers, piece).await {
            tracing::warn!(%error, "a reply could not be sent");
            return;
        }
    }
}

/// Sends a problem. `overloaded`: the name of this replica when it is overloaded or lacks what another may have, so that
/// the request can be sent to another.
pub(crate) async fn send_problem(
    client: &Client,
    reply_to: &Subject,
    problem: &Problem,
    overloaded: Option<&str>,
) {
    let mut headers = HeaderMap::new();
    headers::write_problem(&mut headers, problem);
    if let Some(replica) = overloaded {
        headers.insert(headers::OVERLOADED, replica);
    }
    if let Err(error) = client.publish_with_headers(reply_to.clone(), headers, problem.to_json().into()).await
    {
        tracing::warn!(%error, "a reply could not be sent");
    }
}

/// The client that answers a message. Problems of a pull are sent over the connection of its chunks, to
/// arrive after them.
pub(crate) fn reply_client<'a>(bus: &'a Bus, headers: Option<&HeaderMap>) -> &'a Client {
    let is_pull = headers.is_some_and(|headers| headers.get(headers::PULL).is_some());
    bus.chunk_client().filter(|_| is_pull).unwrap_or(&bus.shared.client)
}
