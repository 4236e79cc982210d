//! Asking: sends a request to any replica of a workload and returns its reply or a problem within the
//! deadline.

mod attempt;
mod others;
mod request;
mod retry;
mod types;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use async_nats::HeaderName;
use bytes::Bytes;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::span::{self, SpanExt};
use proto_msgs::Operation;
use scopeguard::{ScopeGuard, guard};
use tokio::time::Instant;
use tracing::Instrument;

use self::request::Request;
pub use self::{
    others::FromOthers,
    retry::is_busy,
    types::{AskOptions, Reply},
};
use crate::{answer::Answer, connection::Bus, encoding::Encoding, hedge::HedgeDelay, target::Target};

impl Bus {
    /// An operation to send requests to. Exists once per connection, because it collects the reply times.
    pub fn target(&self, workload: &str, operation: &str) -> Arc<Target> {
        self.listen_for_replicas();
        let subject = self.subject(workload, operation);
        let mut targets = self.shared.targets.lock();
        if let Some(target) = targets.get(&subject) {
            return Arc::clone(target);
        }
        let group = self.shared.replicas.group(workload);
        group.mark_asked();
        let target = Arc::new(Target {
            workload: workload.to_owned(),
            operation: operation.to_owned(),
            subject: subject.as_str().into(),
            cancel_subject: self.cancel_subject(workload).into(),
            group,
            hedge_delay: HedgeDelay::default(),
            has_long_replies: AtomicBool::new(false),
            reply_seconds: self.shared.asks.calls.histogram(operation.to_owned(), 0),
        });
        targets.insert(subject, Arc::clone(&target));
        target
    }

    /// Sends a request to any replica of a workload. A read that stays unanswered for longer than usual is
    /// hedged while the budget allows it: sent again without giving up the first attempt. The first answer is
    /// returned.
    ///
    /// # Errors
    /// The service's own problem; `Unavailable` when no replica listens, all are overloaded, or the bus is
    /// away; `DeadlineExceeded` when no reply came in time.
    pub async fn ask(&self, target: &Target, payload: Bytes, options: &AskOptions) -> Result<Reply, Problem> {
        self.ask_with_header(target, payload, options, None).await
    }

    /// Like [`Bus::ask`], with one more header.
    ///
    /// # Errors
    /// As [`Bus::ask`].
    pub(crate) async fn ask_with_header(
        &self,
        target: &Target,
        payload: Bytes,
        options: &AskOptions,
        extra_header: Option<(HeaderName, String)>,
    ) -> Result<Reply, Problem> {
        let started = Instant::now();
        let span = span::ask(&target.workload, &target.operation);
        let deadline = started + options.timeout;
        let request = Request { bus: self, target, payload, options, extra_header, deadline };
        let failed = |code: Code| {
            let seconds = self.shared.asks.calls.histogram(target.operation.clone(), code.number());
            seconds.observe(started.elapsed().as_secs_f64());
        };
        let abandoned = guard((), |()| failed(Code::Canceled));
        let result = retry::run(request, started).instrument(span.clone()).await;
        ScopeGuard::into_inner(abandoned);
        match &result {
            Ok(_) => {
                target.reply_seconds.observe(started.elapsed().as_secs_f64());
            }
            Err(problem) => {
                span.record_failure(problem.code.name());
                failed(problem.code);
            }
        }
        result
    }

    /// Like [`Bus::ask`], with the types of the contract.
    ///
    /// # Errors
    /// As [`Bus::ask`]; `Internal` when the reply does not decode.
    pub async fn ask_typed<R: Operation>(
        &self,
        request: &R,
        timeout: Duration,
    ) -> Result<Answer<R::Reply>, Problem> {
        let options = typed(timeout);
        let target = self.target(R::WORKLOAD, R::NAME);
        let reply = self.ask(&target, request.encode_to_vec().into(), &options).await?;
        let (head, is_final) = (reply.head, reply.is_final);
        Ok(Answer { reply: decode(&reply)?, head, is_final })
    }
}

/// The options of a request that is no client's.
fn typed(timeout: Duration) -> AskOptions {
    AskOptions {
        encoding: Encoding::default(),
        timeout,
        request_id: nuid::next().to_string(),
        client: 0,
        traceparent: None,
        repeatable: true,
    }
}

fn decode<M: prost::Message + Default>(reply: &Reply) -> Result<M, Problem> {
    M::decode(reply.parts.concat().as_slice()).map_err(|error| {
        Problem::internal(NOT_MAPPED, "the reply does not decode").caused_by(error.to_string())
    })
}
