//! The `tx-relay` workload: submits signed transactions to the consensus node, each one once.

mod condition;
mod config;
mod metrics;
mod node;
mod ops;
mod peers;
mod relay;
mod request;
mod result_cache;
mod submission;

use std::{process::ExitCode, time::Duration};

use actix::{Actor, Addr};
use bytes::Bytes;
use mesh_bus::{AnswerFuture, Limits, RequestScope};
use mesh_chassis::{Failure, Service, Setup};
use mesh_node_rpc::foreign_answer;
use mesh_problem::Problem;
use mesh_telemetry::span;
use mesh_transaction::TxHash;
use proto_msgs::{
    Operation,
    v2::{SubmitTransactionReply, SubmitTransactionRequest},
};
use tokio::{sync::watch, time::sleep};

use crate::{
    condition::Condition,
    config::Config,
    metrics::Metrics,
    node::{COMMIT_TIMEOUT, Nodes},
    peers::Peers,
    relay::Relay,
    submission::Submission,
};

/// The name of the workload.
const WORKLOAD: &str = "tx-relay";

/// Pause between two checks of the nodes while one takes transactions; a call that fails says more, sooner.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The same while none does.
const AWAY_CHECK_INTERVAL: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!(WORKLOAD), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { nodes, rules, signatures, in_flight, commits } = setup.config;
    let metrics = Metrics::register(&mut setup.registry.borrow_mut());
    let nodes = Nodes::new(nodes, &metrics)?;
    let condition = watch_nodes(nodes.clone(), metrics.clone());
    let peers = Peers::new(setup.bus.clone());
    let relay = Relay::new(nodes, peers.clone(), rules, signatures, (in_flight, commits), metrics).start();
    let limits = Limits { in_flight, per_operation: in_flight, timeout: longest_deadline() };
    let router = ops::router(setup.bus, relay.clone(), limits, &mut setup.registry.borrow_mut());
    // Requests are served without a node, too: they are answered with `unavailable`.
    let joined = peers.join(relay, router.id().to_owned());
    let serving = router.serve(joined);
    Ok(Service::on_bus(serving, move || {
        let condition = *condition.borrow();
        std::future::ready(match condition {
            Condition::Takes => Ok(()),
            Condition::CatchingUp => Err("the consensus node is catching up".to_owned()),
            Condition::Foreign(status) => Err(format!("the consensus node {}", foreign_answer(status))),
            Condition::Away => Err("the consensus node is unreachable".to_owned()),
        })
    }))
}

/// Longest time for one request: that of a submission in the contract. The whole contract as data takes more than
/// 2 MiB of memory.
fn longest_deadline() -> Duration {
    SubmitTransactionRequest::ANSWER_WITHIN_MS.map_or(COMMIT_TIMEOUT, |ms| Duration::from_millis(ms.into()))
}

/// Checks the nodes at an interval, so that one that returns is used soon.
fn watch_nodes(nodes: Nodes, metrics: Metrics) -> watch::Receiver<Condition> {
    let (sender, condition) = watch::channel(Condition::Away);
    actix::spawn(async move {
        let mut known = None;
        while !sender.is_closed() {
            let now = nodes.check_condition().await;
            if known.replace(now) != Some(now) {
                tracing::info!(node = ?now, "the consensus node");
                metrics.set_condition(now);
                sender.send_replace(now);
            }
            sleep(if now == Condition::Takes { CHECK_INTERVAL } else { AWAY_CHECK_INTERVAL }).await;
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
        let required = request::required_finality(kind, &self.rules);
        let (nodes, signatures) = (self.nodes.clone(), self.signatures.clone());
        scope.run(async move {
            let (tx, required) = (tx?, required?);
            if let Some(signatures) = signatures {
                request::verify(&tx, &signatures, &nodes).await?;
            }
            let hash = TxHash::of(&tx);
            Ok(relay::submit(&relay, Submission { tx, hash, required, span: span::current() }).await?.into())
        })
    }
}
