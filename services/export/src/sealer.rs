//! The actor that seals: looks at every new block whether a span is complete, and lets [`Sealing`] work.
//!
//! Every replica has one. The lock in the database lets one work at a time; the others look again later.

use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, StreamHandler, Supervised, WrapFuture};
use futures_util::stream;
use mesh_bus::{Bus, SegmentStatus};
use mesh_store::Store;
use tokio::sync::watch;

use crate::{
    catalogue::{Catalogue, Listing, Refresh},
    seal::{SealError, Sealed, Sealing, Until},
};

/// How often to look without a new block: another replica may have died at its work.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Pause while the database cannot be asked.
const PAUSE_WHILE_AWAY: Duration = Duration::from_millis(250);

/// Pause after a failure, doubled by each one that follows.
const PAUSE_AT_FIRST: Duration = Duration::from_secs(1);

/// Longest such pause.
const PAUSE_AT_MOST: Duration = Duration::from_secs(60);

/// Seals what is complete.
pub(crate) struct Sealer {
    sealing: Sealing,
    store: Store,
    listing: watch::Receiver<Listing>,
    catalogue: Addr<Catalogue>,
    bus: Bus,
    is_at_work: bool,
    /// Whether something happened since the look under way began.
    looks_again: bool,
    failures: u32,
    not_before: Option<Instant>,
}

/// Something happened that may complete a span.
struct Look;

impl Sealer {
    /// Seals into the store of `sealing` what `store` tells of, and tells the catalogue and the bus.
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
            is_at_work: false,
            looks_again: false,
            failures: 0,
            not_before: None,
        }
    }

    fn look(&mut self, context: &mut Context<Self>) {
        self.looks_again = self.is_at_work;
        if self.is_at_work || self.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        let Some(held) = self.listing.borrow().held.clone() else { return };
        self.is_at_work = true;
        let (sealing, store) = (self.sealing.clone(), self.store.clone());
        let work = async move {
            match sealing.is_due(&store, &held).await {
                Ok(true) => sealing.run(Until::Complete).await,
                Ok(false) => Ok(Sealed::Here(Vec::new())),
                Err(error) => Err(SealError::Read(error)),
            }
        };
        context.spawn(work.into_actor(self).map(|result, sealer, context| sealer.worked(result, context)));
    }

    fn worked(&mut self, result: Result<Sealed, SealError>, context: &mut Context<Self>) {
        self.is_at_work = false;
        match result {
            Ok(sealed) => {
                self.failures = 0;
                self.not_before = None;
                if let Sealed::Here(names) = sealed
                    && let Some(newest) = names.last()
                {
                    self.catalogue.do_send(Refresh);
                    self.tell(SegmentStatus { height_to: newest.height_to }, context);
                }
            }
            // A database that is away is told by everybody.
            Err(SealError::Read(_)) => self.pause(PAUSE_WHILE_AWAY, context),
            Err(error) => {
                let pause = PAUSE_AT_FIRST.saturating_mul(1 << self.failures.min(10)).min(PAUSE_AT_MOST);
                self.failures = self.failures.saturating_add(1);
                self.sealing.metrics.seal_failed();
                tracing::error!(error = &error as &dyn std::error::Error, "sealing failed");
                self.pause(pause, context);
            }
        }
        if std::mem::take(&mut self.looks_again) {
            self.look(context);
        }
    }

    fn pause(&mut self, pause: Duration, context: &mut Context<Self>) {
        self.not_before = Some(Instant::now() + pause);
        context.run_later(pause, |sealer, context| sealer.look(context));
    }

    fn tell(&self, news: SegmentStatus, context: &mut Context<Self>) {
        let bus = self.bus.clone();
        context.spawn(async move { bus.announce(&news).await }.into_actor(self));
    }
}

impl Actor for Sealer {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.is_at_work = false;
        context.add_stream(changes(self.store.watch()));
        context.add_stream(changes(self.listing.clone()));
        context.run_interval(LOOK_AGAIN, |sealer, context| sealer.look(context));
        self.look(context);
    }
}

impl Supervised for Sealer {}

impl StreamHandler<Look> for Sealer {
    fn handle(&mut self, _: Look, context: &mut Self::Context) {
        self.look(context);
    }

    /// The other stream may go on.
    fn finished(&mut self, _: &mut Self::Context) {}
}

/// One item for each change that is seen; several at once may be one.
fn changes<T: Send + Sync + 'static>(watched: watch::Receiver<T>) -> impl stream::Stream<Item = Look> {
    stream::unfold(watched, move |mut watched| async move {
        watched.changed().await.ok()?;
        Some((Look, watched))
    })
}
