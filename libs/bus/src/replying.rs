//! Replies on their way out: compressed where that is welcome, in parts where they are long, or a problem instead.

use async_nats::{Client, HeaderMap, Subject};
use bytes::Bytes;
use mesh_problem::Problem;
use tokio::task::spawn_blocking;

use crate::{
    answering::Head,
    connection::Bus,
    encoding::{Encoding, GZIP_FROM_BYTES, gzip},
    headers::{self, ReplyHeader},
};

/// Payload of one message of a long reply; a bus with the default limit of 1 MiB carries it.
const PART_BYTES: usize = 512 << 10;

/// Longer replies are compressed off the actor's thread.
const GZIP_INLINE_BYTES: usize = 32 << 10;

/// A reply in the encoding that its asker wants.
pub(crate) struct Rendered {
    body: Bytes,
    gzipped: bool,
    head: Option<Head>,
    digest: Option<u32>,
}

impl Rendered {
    /// Bytes that are sent as they are.
    pub(crate) fn plain(body: Vec<u8>) -> Self {
        Self { body: body.into(), gzipped: false, head: None, digest: None }
    }

    /// A reply with what its head says, compressed if that is welcome and worth it.
    pub(crate) async fn compressed(
        body: Vec<u8>,
        encoding: Encoding,
        head: Option<Head>,
        digest: Option<u32>,
    ) -> Self {
        let (body, gzipped) = compress(body, encoding).await;
        Self { body, gzipped, head, digest }
    }

    /// Its length on the bus, bytes.
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }
}

async fn compress(body: Vec<u8>, encoding: Encoding) -> (Bytes, bool) {
    if !encoding.gzip || body.len() <= GZIP_FROM_BYTES {
        return (body.into(), false);
    }
    if body.len() <= GZIP_INLINE_BYTES {
        return (gzip(&body), true);
    }
    let body = Bytes::from(body);
    let plain = body.clone();
    match spawn_blocking(move || gzip(&plain)).await {
        Ok(compressed) => (compressed, true),
        Err(_) => (body, false),
    }
}

/// Sends a reply.
pub(crate) async fn send(bus: &Bus, reply_to: &Subject, rendered: Rendered) {
    let Rendered { mut body, gzipped, head, digest } = rendered;
    let parts = body.len().div_ceil(PART_BYTES).max(1);
    for part in 0..parts {
        let said = match part {
            0 => ReplyHeader { head, digest, gzipped, part, parts },
            _ => ReplyHeader { part, parts, ..ReplyHeader::default() },
        };
        let mut headers = HeaderMap::new();
        if let Some(said) = said.write() {
            headers.insert(headers::REPLY, said);
        }
        let piece = body.split_to(body.len().min(PART_BYTES));
        if let Err(error) = bus.shared.client.publish_with_headers(reply_to.clone(), headers, piece).await {
            tracing::warn!(%error, "a reply could not be sent");
            return;
        }
    }
}

/// Sends a problem; of a replica without room with its name, so that the asker can ask another one.
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
