//! Requests to every other replica of a workload by name, for answers that rest on the memory of each.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use proto_msgs::Operation;
use tokio::time::{Instant, sleep, timeout_at};

use super::{attempt::AttemptResult, decode, request::Request, typed};
use crate::{activity::SILENCE, connection::Bus};

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
    /// Replicas are known from [`Bus::until_replicas_are_known`] on.
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

    /// Resolves when a server is connected and every live replica of the mesh has had the time to send a
    /// heartbeat.
    pub async fn until_replicas_are_known(&self) {
        self.until_connected().await;
        self.listen_for_replicas();
        self.record_request().await;
        sleep(SILENCE).await;
    }
}
