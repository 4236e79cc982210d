//! The `query` workload: paged and single reads from the store.
//!
//! A library, so that `mesh bench` can run the same handlers without the bus; the binary only starts it.

mod config;
mod ops;
mod paging;

use std::process::ExitCode;

use actix::{Actor, Context};
use mesh_bus::{Limits, NodeStatus};
use mesh_chassis::{Failure, LagLimit, Latest, Service, Setup};
use mesh_store::{PageSizes, Store};

use crate::config::Config;

/// Answers reads. It holds no state but its handles, so that slow queries overlap.
pub struct Query {
    store: Store,
    sizes: PageSizes,
    accounts_at_most: usize,
    mailbox: usize,
}

impl Query {
    /// Reads from a store, in pages of these sizes; lists at most so many accounts, takes at most so many
    /// requests at the same time.
    pub fn new(store: Store, sizes: PageSizes, accounts_at_most: usize, in_flight: usize) -> Self {
        Self { store, sizes, accounts_at_most, mailbox: in_flight }
    }
}

impl Actor for Query {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

/// Runs the workload until it is told to stop.
pub fn main() -> ExitCode {
    mesh_chassis::run("query", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { store, lag, sizes, accounts_at_most, in_flight } = setup.config;
    // One operation that became slow leaves room for the others; so do its statements in the store.
    let per_operation = in_flight - in_flight / 4;
    let limits = Limits { in_flight, per_operation, timeout: store.query_timeout };
    let store = Store::open(&store)?;
    store.register(&mut setup.registry.borrow_mut());
    let heard = Latest::<NodeStatus>::subscribe(&setup.bus);
    let query = Query::new(store.clone(), sizes, accounts_at_most, in_flight).start();
    let router = ops::router(setup.bus, query, limits, &mut setup.registry.borrow_mut());
    let waiting = store.clone();
    let serving = router.serve(async move { waiting.until_ready().await });
    Ok(Service::on_bus(serving, move || {
        let (store, heard) = (store.clone(), heard.clone());
        async move {
            store.ready().await.map_err(|error| error.to_string())?;
            let node = heard.within(LagLimit::HEIGHT_MAX_AGE).map(|news| news.height);
            lag.check(node, store.state().head.map(|(height, _)| height))
        }
    }))
}
