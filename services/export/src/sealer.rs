//! The actor that seals: checks at every new block whether a span is complete, and runs [`Sealing`].
//!
//! Every replica has one. A lock in the database lets one seal at a time; the others check again later.

use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, StreamHandler, Supervised, WrapFuture};
use mesh_bus::{Bus, SegmentStatus};
use mesh_chassis::changes;
use mesh_store::{ReadError, Store};
use tokio::sync::watch;

use crate::{
    catalogue::{Catalogue, Listing, Refresh},
    seal::{SealError, Sealed, Sealing, Until},
};

/// Pause between two checks without a new block: another replica may have died while sealing.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Pause while the database is unreachable.
const PAUSE_WHILE_AWAY: Duration = Duration::from_millis(250);

/// Pause after a failure, doubled by each further one.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The actor that seals complete spans.
pub(crate) struct Sealer {
    sealing: Sealing,
    store: Store,
    listing: watch::Receiver<Listing>,
    catalogue: Addr<Catalogue>,
    bus: Bus,
    is_running: bool,
    /// Whether to check again after the run under way.
    checks_again: bool,
    failures: u32,
    not_before: Option<Instant>,
    /// The last refusal, which is logged once.
    refused: Option<String>,
}

/// A change that may complete a span.
#[derive(Clone, Copy)]
struct Check;

impl Sealer {
    /// Seals the blocks of `store` into the segments of `sealing`; notifies the catalogue and the bus.
    pub(crate) fn new(
        sealing: Sealing,
        store: Store,
        listing: watch::Receiver<Listing>,
        catalogue: Addr<Catalogue>,
        bus: Bus,
    ) -> Self {
        Self {
            sealing,
            store,
            listing,
            catalogue,
            bus,
            is_running: false,
            checks_again: false,
            failures: 0,
            not_before: None,
            refused: None,
        }
    }

    fn check(&mut self, context: &mut Context<Self>) {
        self.checks_again = self.is_running;
        if self.is_running || self.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        let Some(list) = self.listing.borrow().segments.clone() else { return };
        self.is_running = true;
        let (sealing, store) = (self.sealing.clone(), self.store.clone());
        let work = async move {
            match sealing.is_due(&store, &list).await {
                Ok(true) => sealing.run(Until::Complete).await,
                Ok(false) => Ok(Sealed::Here(Vec::new())),
                Err(error) => Err(SealError::Read(error)),
            }
        };
        context
            .spawn(work.into_actor(self).map(|result, sealer, context| sealer.finished_run(result, context)));
    }

    fn finished_run(&mut self, result: Result<Sealed, SealError>, context: &mut Context<Self>) {
        self.is_running = false;
        match result {
            Ok(sealed) => {
                self.failures = 0;
                self.not_before = None;
                // Another replica with the lock reports its own refusals.
                if let Sealed::Here(names) = sealed {
                    self.set_refused(None);
                    if let Some(newest) = names.last() {
                        self.catalogue.do_send(Refresh);
                        self.announce(SegmentStatus { height_to: newest.height_to }, context);
                    }
                }
            }
            // The store logs that the database is unreachable.
            Err(SealError::Read(
                ReadError::Away(_)
                | ReadError::Aborted(_)
                | ReadError::Full(_)
                | ReadError::Busy
                | ReadError::Late
                | ReadError::Locked,
            )) => self.pause(PAUSE_WHILE_AWAY, context),
            Err(error @ SealError::Refused { .. }) => {
                // Segments of the spans before it may be new.
                self.catalogue.do_send(Refresh);
                self.set_refused(Some(error.to_string()));
                self.pause(CHECK_INTERVAL, context);
            }
            Err(error) => {
                let pause = MIN_PAUSE.saturating_mul(1 << self.failures.min(10)).min(MAX_PAUSE);
                self.failures = self.failures.saturating_add(1);
                self.sealing.metrics.failures.inc();
                tracing::error!(error = mesh_problem::error_chain(&error), "sealing failed");
                self.catalogue.do_send(Refresh);
                self.pause(pause, context);
            }
        }
        if std::mem::take(&mut self.checks_again) {
            self.check(context);
        }
    }

    fn set_refused(&mut self, refused: Option<String>) {
        self.sealing.metrics.refused.set(refused.is_some().into());
        if let Some(refused) = refused.as_ref().filter(|_| refused != self.refused) {
            tracing::error!("{refused}; the history stays as it is until the blocks are repaired");
        }
        self.refused = refused;
    }

    fn pause(&mut self, pause: Duration, context: &mut Context<Self>) {
        self.not_before = Some(Instant::now() + pause);
        context.run_later(pause, |sealer, context| sealer.check(context));
    }

    fn announce(&self, news: SegmentStatus, context: &mut Context<Self>) {
        let bus = self.bus.clone();
        context.spawn(async move { bus.announce(&news).await }.into_actor(self));
    }
}

impl Actor for Sealer {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.is_running = false;
        context.add_stream(changes(self.store.watch(), Check));
        context.add_stream(changes(self.listing.clone(), Check));
        context.run_interval(CHECK_INTERVAL, |sealer, context| sealer.check(context));
        self.check(context);
    }
}

impl Supervised for Sealer {}

impl StreamHandler<Check> for Sealer {
    fn handle(&mut self, _: Check, context: &mut Self::Context) {
        self.check(context);
    }

    /// Keeps the actor running when one of its streams ends.
    fn finished(&mut self, _: &mut Self::Context) {}
}
