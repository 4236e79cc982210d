//! Options of a request, and its reply.

use std::time::Duration;

use bytes::Bytes;
use mesh_telemetry::TraceContext;

use crate::{answer::Head, encoding::Encoding};

/// Options of a request.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// Form of the reply.
    pub encoding: Encoding,
    /// Longest time to wait for the reply; sent with the request.
    pub timeout: Duration,
    /// Id of the client's request, for logs.
    pub request_id: String,
    /// Whose request it is: clients wait in turn at a service that is full. 0 = unknown.
    pub client: u64,
    /// W3C trace context to pass on where no span is recorded here; a recorded span takes precedence.
    pub traceparent: Option<TraceContext>,
    /// Whether the request may be sent to any replica again when one may have received it; `false` for submissions, which are
    /// sent again only to the replica that has them, when they or their reply may be lost.
    pub repeatable: bool,
}

/// A reply as received.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The reply in the requested form, in pieces to be joined in this order.
    pub parts: Vec<Bytes>,
    /// Whether the pieces are one gzip stream.
    pub gzipped: bool,
    /// The newest block at the time of the read.
    pub head: Option<Head>,
    /// A digest of the content, the same for all its JSON forms. Set for JSON with a head.
    pub digest: Option<u128>,
    /// Whether every later reply to the same request is the same, byte by byte.
    pub is_final: bool,
}

impl Reply {
    /// Length of the whole reply in bytes.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Whether the reply has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
