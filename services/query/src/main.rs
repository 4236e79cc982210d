//! The `query` workload: paged and single reads from the store.

mod config;
mod ops;
mod paging;

use std::process::ExitCode;

use actix::{Actor, Context};
use mesh_bus::Limits;
use mesh_chassis::{Failure, Running, Setup};
use mesh_store::{PageSizes, Store};

use crate::config::Config;

/// Answers reads. It holds no state but its handles, so that slow queries overlap.
pub(crate) struct Query {
    store: Store,
    sizes: PageSizes,
    accounts_at_most: usize,
    mailbox: usize,
}

impl Actor for Query {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

fn main() -> ExitCode {
    mesh_chassis::run("query", env!("CARGO_PKG_VERSION"), start)
}

async fn start(setup: Setup<Config>) -> Result<Running, Failure> {
    let Config { store, sizes, accounts_at_most, in_flight } = setup.config;
    let limits = Limits { in_flight, timeout: store.query_timeout };
    let store = Store::open(&store)?;
    let query = Query { store: store.clone(), sizes, accounts_at_most, mailbox: in_flight }.start();
    let router = ops::router(setup.bus, query, limits, &mut setup.registry.borrow_mut());
    let waiting = store.clone();
    let serving = router.serve(async move { waiting.until_ready().await });
    Ok(Running::serving(serving, move || {
        let store = store.clone();
        async move { store.ready().await.map_err(|error| error.to_string()) }
    }))
}
