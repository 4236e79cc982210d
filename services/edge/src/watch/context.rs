//! What all live queries of one edge share: the path of their reads, the heads, the delivery of changes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use mesh_problem::Problem;
use proto_msgs::{Contract, OperationInfo};
use tokio::time::Instant;

use crate::{
    ask::{answer::Answer, backend::Backend, cache::Question, call_context::CallContext, heads::ChainHeads},
    config::Config,
    metrics::Metrics,
    watch::{
        delivery::Delivery,
        look_queue::{Lane, LookQueue},
    },
};

/// What all live queries of one edge share.
pub(super) struct WatchContext {
    pub(super) backend: Arc<Backend>,
    pub(super) heads: Arc<ChainHeads>,
    pub(super) delivery: Delivery,
    pub(super) metrics: Metrics,
    /// By operation. The operations of a workload share a queue, so that a hanging workload delays only its own
    /// looks.
    looks: HashMap<&'static str, Arc<LookQueue>>,
    answer_time: Duration,
}

impl WatchContext {
    /// Starts the delivery of changes.
    pub(super) fn start(
        backend: Arc<Backend>,
        heads: Arc<ChainHeads>,
        config: &Config,
        metrics: &Metrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            backend,
            heads,
            delivery: Delivery::start(),
            metrics: metrics.clone(),
            looks: look_queues(),
            answer_time: config.limits.answer_time,
        })
    }

    /// The lane of a client for looks of this operation; `None` for an unknown one.
    pub(super) fn lane(&self, client: u64, operation: &str) -> Option<Arc<Lane>> {
        Some(self.looks.get(operation)?.lane(client))
    }

    /// Reads an answer for a live query that this client began.
    pub(super) async fn look(
        &self,
        question: &Arc<Question>,
        (client, lane): (u64, Option<&Lane>),
    ) -> Result<Arc<Answer>, Problem> {
        let _place = match self.looks.get(question.operation).zip(lane) {
            Some((looks, lane)) => Some(looks.place(lane).await),
            None => None,
        };
        let context = CallContext {
            request_id: nuid::next().to_string(),
            client,
            is_look: true,
            traceparent: None,
            deadline: Instant::now() + self.answer_time,
            has_full_time: true,
            connection: Arc::default(),
        };
        self.backend.read(question, &context).await
    }
}

/// The queues of looks by operation.
fn look_queues() -> HashMap<&'static str, Arc<LookQueue>> {
    let mut of_workloads = HashMap::<_, Arc<LookQueue>>::new();
    let queue_of = |operation: &'static OperationInfo| {
        let queue = of_workloads.entry(operation.workload.as_str()).or_default();
        (operation.name.as_str(), Arc::clone(queue))
    };
    Contract::get().operations().iter().map(queue_of).collect()
}
