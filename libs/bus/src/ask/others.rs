//! Requests to every other replica of a workload by name, for answers that rest on the memory of each.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use proto_msgs::Operation;
use tokio::time::{Instant, timeout, timeout_at};

use super::{attempt::AttemptResult, decode, request::Request, typed};
use crate::{activity::SILENCE, connection::Bus, inbox::Arrival};

/// The replies of the other replicas of a workload.
#[derive(Debug)]
pub struct FromOthers<T> {
    /// The replies, in no order.
    pub replies: Vec<T>,
    /// Whether a replica may be there that did not reply: it is silent, busy, or late.
    pub is_partial: bool,
}

impl Bus {
    /// Sends a request to every live replica of a workload but `own` and waits for all replies, for `limit` at
    /// most. A disconnected or draining replica is left out; a silent one is not waited for.
    /// Replicas are known from [`Bus::others_are_known`] on.
    pub async fn ask_others<R: Operation>(
        &self,
        own: &str,
        request: &R,
        limit: Duration,
    ) -> FromOthers<R::Reply> {
        let target = self.target(R::WORKLOAD, R::NAME);
        let (payload, options) = (Bytes::from(request.encode_to_vec()), typed(limit));
        let deadline = Instant::now() + limit;
        let (alive, silent) = target.group.others_taking(own, Instant::now());
        let asked = alive.into_iter().map(async |replica: Arc<str>| {
            let request = Request {
                bus: self,
                target: &target,
                payload: payload.clone(),
                options: &options,
                extra_header: None,
                deadline,
            };
            let mut attempt = request.send(Some(replica), false).await.map_err(drop)?;
            match timeout_at(deadline, attempt.result()).await {
                Ok(AttemptResult::Answered(Ok(reply))) => decode(&reply).map_err(drop),
                // One that does not listen may be reconnecting; probes find out whether it is gone.
                Ok(_) | Err(_) => Err(()),
            }
        });
        let results: Vec<Result<R::Reply, ()>> = join_all(asked).await;
        FromOthers {
            is_partial: silent > 0 || results.iter().any(Result::is_err),
            replies: results.into_iter().flatten().collect(),
        }
    }

    /// For a replica that does not take requests yet: whether the other replicas of its workload are known, at the latest
    /// after `limit`. `false` if some are subscribed, but none sends heartbeats, because they are frozen or lost.
    pub async fn others_are_known(&self, workload: &str, limit: Duration) -> bool {
        self.until_connected().await;
        self.listen_for_replicas();
        let (group, deadline) = (self.shared.replicas.group(workload), Instant::now() + limit);
        group.mark_asked();
        loop {
            self.record_request().await;
            // To the subject that all replicas subscribe to. An empty cancellation cancels nothing.
            let (mut pending, subject) =
                (self.shared.inbox.register(workload), self.cancel_subject(workload));
            let reply_to = pending.reply_to.clone();
            let _ = self.shared.client.publish_with_reply(subject, reply_to, Bytes::new()).await;
            let arrival = timeout(SILENCE, pending.arrival()).await;
            if matches!(arrival, Ok(Arrival::NoResponder)) || !group.has_none() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
        }
    }

    /// The replicas of a workload, the caller's own included, that take requests, and those that are silent and may be there.
    pub fn known_replicas(&self, workload: &str) -> Vec<String> {
        self.shared.replicas.group(workload).names()
    }

    /// Records replicas of a workload that another one knows.
    pub fn learn_replicas(&self, workload: &str, names: &[String]) {
        self.shared.replicas.group(workload).learn(names, Instant::now());
    }
}
