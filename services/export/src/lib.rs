//! The `export` workload: lays downloads out, answers their pulls, and seals the history they come from.
//!
//! A library, so that tests and tools can run the same actors without a process; the binary only starts it.

mod catalogue;
mod config;
mod layout_cache;
mod metrics;
mod ops;
mod seal;
mod sealer;

use std::{cell::RefCell, process::ExitCode, rc::Rc, sync::Arc};

use actix::{Actor, Addr, Context, Supervisor};
use mesh_bus::Limits;
use mesh_chassis::{Failure, Service, Setup};
use mesh_history::SegmentStore;
use mesh_store::Store;
use tokio::sync::watch;

pub use crate::{
    catalogue::{Catalogue, Listing, Refresh},
    metrics::Metrics,
    seal::{Rules, SealError, Sealed, Sealing, Until, history_statement},
};
use crate::{
    config::Config,
    layout_cache::LayoutCache,
    ops::ledger::{
        accounts::{AccountCache, MAX_ACCOUNTS},
        walk::Walk,
        walk_cache::WalkCache,
    },
    sealer::Sealer,
};

/// Opens downloads and answers their pulls. Its caches only save work: every pull can be answered without
/// them.
pub struct Export {
    store: Store,
    segments: SegmentStore,
    listing: watch::Receiver<Listing>,
    catalogue: Addr<Catalogue>,
    layouts: Rc<RefCell<LayoutCache>>,
    ledger_accounts: Arc<AccountCache>,
    ledger_walks: Arc<WalkCache<Walk>>,
    metrics: Metrics,
    mailbox: usize,
}

impl Export {
    /// Reads the ledger from `store` and the history from `segments`, which `catalogue` lists into `listing`.
    /// `in_flight` is the capacity of its mailbox.
    pub fn new(
        store: Store,
        segments: SegmentStore,
        listing: watch::Receiver<Listing>,
        catalogue: Addr<Catalogue>,
        metrics: Metrics,
        in_flight: usize,
    ) -> Self {
        Self {
            store,
            segments,
            listing,
            catalogue,
            layouts: Rc::default(),
            ledger_accounts: Arc::new(AccountCache::new(MAX_ACCOUNTS)),
            ledger_walks: Arc::default(),
            metrics,
            mailbox: in_flight,
        }
    }
}

impl Actor for Export {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.mailbox);
    }
}

/// Runs the workload until SIGTERM or SIGINT.
pub fn main() -> ExitCode {
    mesh_chassis::run(mesh_chassis::program!("export"), start)
}

async fn start(setup: Setup<Config>) -> Result<Service, Failure> {
    let Config { store: store_config, history_root, refresh, rules, scratch, in_flight } = setup.config;
    let limits = Limits { in_flight, per_operation: in_flight, timeout: store_config.query_timeout };
    let segments = SegmentStore::open(&history_root);
    let segments = segments.map_err(|error| format!("MESH_HISTORY_URL: {error}"))?;
    let store = Store::open(&store_config)?;
    store.register(&mut setup.registry.borrow_mut());
    let metrics = Metrics::register(&mut setup.registry.borrow_mut());

    let (sender, listing) = watch::channel(Listing::default());
    let catalogue = {
        let (segments, store) = (segments.clone(), store.clone());
        let (bus, metrics) = (setup.bus.clone(), metrics.clone());
        Supervisor::start(move |_| Catalogue::new(segments, store, refresh, Some(bus), sender, metrics))
    };
    let sealing = Sealing {
        database_url: store_config.url,
        segments: segments.clone(),
        rules,
        scratch,
        metrics: metrics.clone(),
    };
    {
        let (store, listing, catalogue, bus) =
            (store.clone(), listing.clone(), catalogue.clone(), setup.bus.clone());
        Supervisor::start(move |_| Sealer::new(sealing, store, listing, catalogue, bus));
    }
    let export = Export::new(store, segments, listing.clone(), catalogue, metrics, in_flight).start();
    let router = ops::router(setup.bus, export, limits, &mut setup.registry.borrow_mut());
    // Serving starts with the first listing, not with the database: the history is served without it.
    let mut first = listing.clone();
    let serving = router.serve(async move {
        // Fails only when the catalogue is gone, at the end of the process.
        let _ = first.wait_for(|listing| listing.segments.is_some()).await;
    });
    Ok(Service::on_bus(serving, move || {
        let failure = listing.borrow().failure.clone();
        async move {
            match failure {
                Some(failure) => Err(format!("the segments cannot be listed: {failure}")),
                None => Ok(()),
            }
        }
    }))
}
