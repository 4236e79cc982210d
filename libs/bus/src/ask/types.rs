//! How a request is sent, and what comes back.

use std::time::Duration;

use bytes::Bytes;
use mesh_telemetry::TraceContext;

use crate::{answer::Head, encoding::Encoding};

/// How to ask.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// Form of the reply.
    pub encoding: Encoding,
    /// Longest time to wait for the reply; travels with the request.
    pub timeout: Duration,
    /// Id of the outside request, for logs.
    pub request_id: String,
    /// W3C trace context to pass on where no span is recorded here; a recorded span takes precedence.
    pub traceparent: Option<TraceContext>,
    /// Whether the request may be sent again when a replica may have received it (never a submission).
    pub repeatable: bool,
}

/// A reply as it came off the bus.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The reply in the form asked for, in pieces to be joined in this order.
    pub parts: Vec<Bytes>,
    /// Whether the pieces are one gzip stream.
    pub gzipped: bool,
    /// The newest block at the time of the read.
    pub head: Option<Head>,
    /// Changes with the content, the same for all JSON forms of it. Set for JSON that has a head.
    pub digest: Option<u32>,
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
