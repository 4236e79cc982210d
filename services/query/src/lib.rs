//! The `query` workload: paged and single reads from the store.
//!
//! A library, so that `mesh bench` can run the same handlers without the bus; the binary only starts it.

mod config;
mod ops;
mod paging;

use std::{num::NonZero, process::ExitCode, thread::available_parallelism};

use actix::{Actor, Context};
use mesh_bus::{Limits, NodeStatus, Places};
use mesh_chassis::{Failure, LagLimit, Latest, Service, Setup};
use mesh_problem::error_chain;
use mesh_store::{PageSizes, Store};
pub use ops::{
    ACCOUNTS, ASSETS, BOOK, CANDLES, DELEGATIONS, DEPOSITS, LISTS, MARKETS, ORDERS, PAST_BOOK, POSITIONS,
    PROPOSALS, SUMMARIES, TRADES, WITHDRAWALS,
};

use crate::config::Config;

/// Answers reads. It has no state besides handles, so that slow queries run concurrently.
pub struct Query {
    store: Store,
    sizes: PageSizes,
    max_accounts: usize,
    mailbox: usize,
}

impl Query {
    /// Reads from a store in pages of these sizes. `in_flight` is the capacity of its mailbox.
    pub fn new(store: Store, sizes: PageSizes, max_accounts: usize, in_flight: usize) -> Self {
        Self { store, sizes, max_accounts, mailbox: in_flight }
    }
}

impl Actor for Query {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

/// Runs the workload until SIGTERM or SIGINT.
pub fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("query"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { store, lag, sizes, max_accounts, in_flight } = setup.config;
    // An operation gets three quarters of the requests at most, so that a slow one does not block the others.
    let per_operation = in_flight - in_flight / 4;
    let limits = Limits { in_flight, per_operation, timeout: store.query_timeout };
    // A long page needs about as much processor time here as in the database.
    let processors = available_parallelism().map_or(1, NonZero::get);
    let lists = Places { brief: processors.max(2), all: store.list_connections };
    let store = Store::open(&store)?;
    store.register(&mut setup.registry.borrow_mut());
    let node_status = Latest::<NodeStatus>::subscribe(&setup.bus);
    let query = Query::new(store.clone(), sizes, max_accounts, in_flight).start();
    let router = ops::router(setup.bus, query, limits, lists, &mut setup.registry.borrow_mut());
    let waiting = store.clone();
    let serving = router.serve(async move { waiting.until_ready().await });
    Ok(Service::on_bus(serving, move || {
        let (store, node_status) = (store.clone(), node_status.clone());
        async move {
            store.ready().await.map_err(|error| error_chain(&error))?;
            let node = node_status.within(LagLimit::HEIGHT_MAX_AGE).map(|news| news.height);
            lag.check(node, store.state().head.map(|(height, _)| height))
        }
    }))
}
