//! The `tx-relay` workload: takes signed transactions to the consensus node and gives each one fate.

mod config;
mod fates;
mod metrics;
mod node;
mod ops;
mod relay;
mod request;
mod submission;

use std::{process::ExitCode, time::Duration};

use actix::{Actor, Addr};
use bytes::Bytes;
use mesh_bus::{AnswerFuture, Limits, RequestScope};
use mesh_chassis::{Failure, Service, Setup};
use mesh_problem::Problem;
use mesh_telemetry::span;
use mesh_transaction::TxHash;
use proto_msgs::{Contract, v2::SubmitTransactionReply};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{
    config::Config,
    metrics::Metrics,
    node::{COMMIT, Condition, Nodes},
    relay::Relay,
    submission::Submission,
};

/// The name of the workload.
const WORKLOAD: &str = "tx-relay";

/// How often the nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    mesh_chassis::run(WORKLOAD, env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { nodes, rules, signatures, in_flight, commits } = setup.config;
    let metrics = Metrics::register(&mut setup.registry.borrow_mut());
    let nodes = Nodes::new(nodes, &metrics);
    let condition = watch_nodes(nodes.clone(), metrics.clone());
    let relay = Relay::new(nodes, rules, signatures, (in_flight, commits), metrics).start();
    let limits = Limits { in_flight, per_operation: in_flight, timeout: longest() };
    let router = ops::router(setup.bus, relay, limits, &mut setup.registry.borrow_mut());
    // It answers without a node, too: that there is none.
    let serving = router.serve(std::future::ready(()));
    Ok(Service::on_bus(serving, move || {
        let condition = *condition.borrow();
        std::future::ready(match condition {
            Condition::Takes => Ok(()),
            Condition::CatchingUp => Err("the consensus node is catching up".to_owned()),
            Condition::Away => Err("the consensus node is away".to_owned()),
        })
    }))
}

/// Longest time for one request: what the contract gives a commit, with what may come before and after it.
fn longest() -> Duration {
    let ours = Contract::get().operations().iter().filter(|operation| operation.workload == WORKLOAD);
    ours.filter_map(|operation| operation.answer_within).max().unwrap_or(COMMIT)
}

/// Looks at the nodes again and again, so that one that returns is used at once.
fn watch_nodes(nodes: Nodes, metrics: Metrics) -> watch::Receiver<Condition> {
    let (tell, condition) = watch::channel(Condition::Away);
    actix::spawn(async move {
        let mut turn = interval(LOOK_EVERY);
        turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = None;
        while !tell.is_closed() {
            turn.tick().await;
            let now = nodes.look().await;
            if known.replace(now) != Some(now) {
                tracing::info!(node = ?now, "the consensus node");
                metrics.node(now);
                tell.send_replace(now);
            }
        }
    });
    condition
}

impl Relay {
    /// Submits an encoded transaction.
    fn submit(
        &self,
        kind: i32,
        tx: Result<Bytes, Problem>,
        relay: Addr<Self>,
        scope: RequestScope,
    ) -> AnswerFuture<SubmitTransactionReply> {
        let wanted = request::wanted(kind, &self.rules);
        let (nodes, signatures) = (self.nodes.clone(), self.signatures.clone());
        scope.run(async move {
            let (tx, wanted) = (tx?, wanted?);
            if let Some(signatures) = signatures {
                request::verify(&tx, &signatures, &nodes).await?;
            }
            let hash = TxHash::of(&tx);
            Ok(relay::submit(&relay, Submission { tx, hash, wanted, span: span::current() }).await?.into())
        })
    }
}
