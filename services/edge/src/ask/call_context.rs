//! The request that a call of a service is made for.

use std::{sync::Arc, time::Duration};

use mesh_bus::{AskOptions, Encoding, PullLimits, PullOptions};
use mesh_telemetry::TraceContext;
use tokio::time::Instant;

use crate::{admission::ClientContext, connection::ConnectionState};

/// The request that a call is made for.
pub(crate) struct CallContext {
    pub(crate) request_id: String,
    /// Whose request it is: clients wait in turn at a service that is full.
    pub(crate) client: u64,
    /// Whether it repeats the read of a watched question.
    pub(crate) is_look: bool,
    /// W3C trace context to pass on where no span is recorded.
    pub(crate) traceparent: Option<TraceContext>,
    /// The client waits no longer than this.
    pub(crate) deadline: Instant,
    /// Whether the deadline is the operation's own, rather than a shorter one of the client.
    pub(crate) has_full_time: bool,
    pub(crate) connection: Arc<ConnectionState>,
}

impl CallContext {
    /// The context of a client's request that is answered within this time.
    pub(crate) fn new(
        request_id: String,
        client: &ClientContext,
        traceparent: Option<TraceContext>,
        within: Duration,
    ) -> Self {
        Self {
            request_id,
            client: client.id.number(),
            is_look: false,
            traceparent,
            deadline: Instant::now() + within,
            has_full_time: true,
            connection: Arc::clone(&client.connection),
        }
    }

    /// The same with the client's own deadline, if it has set an earlier one.
    pub(crate) fn with_deadline(self, deadline: Option<Instant>) -> Self {
        match deadline {
            Some(deadline) if deadline < self.deadline => Self { deadline, has_full_time: false, ..self },
            _ => self,
        }
    }

    /// The options of a request; `repeatable`: whether it may be sent to another replica, too.
    pub(super) fn ask_options(&self, encoding: Encoding, repeatable: bool) -> AskOptions {
        AskOptions {
            encoding,
            timeout: self.deadline.saturating_duration_since(Instant::now()),
            request_id: self.request_id.clone(),
            client: self.client,
            traceparent: self.traceparent.clone(),
            repeatable,
        }
    }

    /// The options of pulling a download up to a byte, or to its end.
    pub(super) fn pull_options(&self, to_byte: Option<u64>) -> PullOptions {
        PullOptions {
            to_byte,
            request_id: self.request_id.clone(),
            traceparent: self.traceparent.clone(),
            limits: PullLimits::default(),
        }
    }
}
