//! The `node-info` workload: block height, version, limits and upgrade status of the network.

mod config;
mod heads;
mod metrics;
mod node;
mod ops;
mod subscription;

use std::{cell::RefCell, process::ExitCode, rc::Rc};

use actix::{Actor, Context, Supervisor};
use mesh_bus::{Limits, NodeStatus};
use mesh_chassis::{Failure, LagLimit, Latest, Service, Setup};
use mesh_problem::error_chain;
use mesh_store::Store;
use tokio::sync::watch;

use crate::{config::Config, heads::HeadAnnouncer, metrics::Metrics};

/// Answers from the node and the store: newest block, limits, upgrade status.
pub(crate) struct NodeInfo {
    store: Store,
    node: Option<watch::Receiver<node::Observation>>,
    height: Rc<RefCell<Option<ops::CachedReply>>>,
    mailbox: usize,
}

impl Actor for NodeInfo {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("node-info"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { store, nodes, lag, in_flight } = setup.config;
    let limits = Limits { in_flight, per_operation: in_flight, timeout: store.query_timeout };
    let store = Store::open(&store)?;
    store.register(&mut setup.registry.borrow_mut());
    let node = if nodes.is_empty() { None } else { Some(node::follow(nodes)?) };
    let metrics = Metrics::register(&mut setup.registry.borrow_mut(), node.is_some());
    let (bus, states, observations) = (setup.bus.clone(), store.watch(), node.clone());
    Supervisor::start(|_| HeadAnnouncer::new(bus, states, observations, metrics));
    let node_status = Latest::<NodeStatus>::subscribe(&setup.bus);
    let node_info =
        NodeInfo { store: store.clone(), node: node.clone(), height: Rc::default(), mailbox: in_flight }
            .start();
    let router = ops::router(setup.bus, node_info, limits, &mut setup.registry.borrow_mut());
    let waiting = store.clone();
    let serving = router.serve(async move { waiting.until_ready().await });
    Ok(Service::on_bus(serving, move || {
        let (store, node_status) = (store.clone(), node_status.clone());
        let state = node.as_ref().map(|node| node.borrow().state.clone());
        async move {
            store.ready().await.map_err(|error| error_chain(&error))?;
            if let Some(state) = state {
                state.check()?;
            }
            let node = node_status.within(LagLimit::HEIGHT_MAX_AGE).map(|news| news.height);
            lag.check(node, store.state().head.map(|(height, _)| height))
        }
    }))
}
