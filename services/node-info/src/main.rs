//! The `node-info` workload: where the network and this gateway stand.

mod config;
mod ops;

use std::process::ExitCode;

use actix::{Actor, Context};
use mesh_bus::Limits;
use mesh_chassis::{Failure, Running, Setup};
use mesh_store::Store;

use crate::config::Config;

/// Answers from the store: newest block, limits, upgrade status.
pub(crate) struct NodeInfo {
    store: Store,
    mailbox: usize,
}

impl Actor for NodeInfo {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

fn main() -> ExitCode {
    mesh_chassis::run("node-info", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Running, Failure> {
    let Config { store, in_flight } = setup.config;
    let limits = Limits { in_flight, timeout: store.query_timeout };
    let store = Store::open(&store)?;
    let node_info = NodeInfo { store: store.clone(), mailbox: in_flight }.start();
    let router = ops::router(setup.bus, node_info, limits, &mut setup.registry.borrow_mut());
    let waiting = store.clone();
    let serving = router.serve(async move { waiting.until_ready().await });
    Ok(Running::serving(serving, move || {
        let store = store.clone();
        async move { store.ready().await.map_err(|error| error.to_string()) }
    }))
}
