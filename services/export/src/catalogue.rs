//! The catalogue of the chain's stored segments. Listed from the object store alone, so that it works without a
//! database; until the database has named its chain, the one with most segments is assumed.
//!
//! Listed every period (a large store less often), when a sealer announces a new segment, and on request.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, ResponseFuture, SpawnHandle,
    Supervised, WrapFuture,
};
use futures_util::StreamExt;
use mesh_bus::{Bus, SegmentStatus};
use mesh_history::{HistoryError, SegmentList, SegmentName, SegmentStore, Unreadable};
use mesh_problem::{Problem, error_chain};
use mesh_store::Store;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use crate::metrics::Metrics;

/// A listing reads every object's metadata, so the next one waits this many times as long as it took …
const PAUSE_FACTOR: u32 = 20;
/// … and no longer than this.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Deadline for reading the chain of the database.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause after a listing with segments of several chains, while the database has not named its own.
const UNNAMED_PAUSE: Duration = Duration::from_secs(1);

/// The last listing.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The segments, as of the last listing that succeeded; `None` before the first.
    pub segments: Option<Arc<SegmentList>>,
    /// Why the newest listing failed, if it did.
    pub failure: Option<Arc<str>>,
    /// Last height of the segment that a replica has announced and that is looked for; otherwise 0.
    pub announced: u64,
}

impl Listing {
    /// Whether another replica may show a segment that this listing lacks.
    pub fn is_behind(&self) -> bool {
        let newest = self.segments.as_ref().and_then(|list| list.segments.last());
        self.announced > newest.map_or(0, |segment| segment.height_to)
    }

    /// The segments that no replica shows more of.
    ///
    /// # Errors
    ///
    /// Problem `number`, when the newest listing failed, or a segment could not be reached: a list without it would be shorter.
    pub(crate) async fn newest(
        self,
        catalogue: &Addr<Catalogue>,
        number: u32,
    ) -> Result<Arc<SegmentList>, Problem> {
        let failed =
            |cause: &str| Problem::internal(number, "the segments cannot be listed").caused_by(cause);
        let listing = match self.is_behind() {
            // The replica that sealed the segment shows it already.
            true => catalogue.send(Refresh).await.map_err(|error| failed(&error.to_string()))?,
            false => self,
        };
        if let Some(failure) = listing.failure {
            return Err(failed(&failure));
        }
        let list = listing.segments.ok_or_else(|| failed("nothing was listed yet"))?;
        if let Some(Unreadable { name, error }) = list.unreachable() {
            return Err(failed(&format!("{name}: {}", error_chain(error))));
        }
        Ok(list)
    }
}

/// Lists the segments.
pub struct Catalogue {
    segments: SegmentStore,
    store: Store,
    /// The chain of the database, as last read.
    chain_id: Option<String>,
    /// Files of other chains in the last listing.
    others: Vec<SegmentName>,
    /// The first fault of the chain of segments in the last listing, which is logged once.
    chain_fault: Option<String>,
    period: Duration,
    listing: watch::Sender<Listing>,
    metrics: Metrics,
    bus: Option<Bus>,
    is_listing: bool,
    /// Handle of the scheduled next listing, while none is running.
    next: Option<SpawnHandle>,
    /// Callers that wait for the next listing to begin.
    waiting: Vec<oneshot::Sender<Listing>>,
}

/// Requests a listing that begins after this message.
#[derive(Message)]
#[rtype(result = "Listing")]
pub struct Refresh;

impl Catalogue {
    /// Lists the segments of the chain of `store` every `period`, and when another replica announces a segment
    /// on the bus. Sends the result to `listing`.
    pub fn new(
        segments: SegmentStore,
        store: Store,
        period: Duration,
        bus: Option<Bus>,
        listing: watch::Sender<Listing>,
        metrics: Metrics,
    ) -> Self {
        Self {
            segments,
            store,
            chain_id: None,
            others: Vec::new(),
            chain_fault: None,
            period,
            listing,
            metrics,
            bus,
            is_listing: false,
            next: None,
            waiting: Vec::new(),
        }
    }

    fn list(&mut self, context: &mut Context<Self>) {
        if self.is_listing {
            return;
        }
        self.is_listing = true;
        if let Some(next) = self.next.take() {
            context.cancel_future(next);
        }
        let began = Instant::now();
        let callers = std::mem::take(&mut self.waiting);
        let (segments, store, known) = (self.segments.clone(), self.store.clone(), self.chain_id.clone());
        let listed = async move {
            // The listing does not wait for a database that hangs.
            let chain_id = timeout(CHAIN_TIMEOUT, stored_chain(&store));
            let (list, chain_id) = tokio::join!(segments.list(), chain_id);
            Ok((list?, chain_id.ok().flatten().or(known)))
        };
        let listed = listed.into_actor(self);
        context.spawn(listed.map(move |list, catalogue, context| {
            catalogue.is_listing = false;
            let took = if list.is_ok() { began.elapsed() } else { Duration::ZERO };
            match list {
                Ok((list, chain_id)) => {
                    catalogue.chain_id = chain_id;
                    let list = catalogue.of_chain(list);
                    catalogue.take(list);
                }
                Err(error) => catalogue.fail(&error),
            }
            for caller in callers {
                // Fails only when the caller has gone.
                let _ = caller.send(catalogue.listing.borrow().clone());
            }
            let is_assumed = catalogue.chain_id.is_none() && !catalogue.others.is_empty();
            let period = if is_assumed { UNNAMED_PAUSE.min(catalogue.period) } else { catalogue.period };
            let pause = pause(period, took);
            catalogue.next = Some(context.run_later(pause, |catalogue, context| catalogue.list(context)));
            if !catalogue.waiting.is_empty() {
                catalogue.list(context);
            }
        }));
    }

    /// The segments that count: files of other chains may lie in the same folder.
    fn of_chain(&mut self, list: SegmentList) -> SegmentList {
        let Some(chain_id) = self.chain_id.clone().or_else(|| list.main_chain()) else { return list };
        let (list, others) = list.of_chain(&chain_id);
        if others != self.others && !others.is_empty() {
            let files = others.len();
            tracing::warn!(files, first = %others[0], chain_id, "files of other chains are ignored");
        }
        self.others = others;
        list
    }

    fn take(&mut self, list: SegmentList) {
        let newest = list.segments.last().map(|segment| segment.height_to);
        let faults = list.chain_faults();
        self.metrics.set_segments(list.segments.len(), list.unreadable.len() + faults.len(), newest);
        // Sealing continues above the newest segment and does not repair them.
        let fault = faults.first().map(ToString::to_string);
        if let Some(fault) = fault.as_ref().filter(|_| fault != self.chain_fault) {
            tracing::error!(fault, faults = faults.len(), "the segments are not one chain");
        }
        self.chain_fault = fault;
        self.listing.send_if_modified(|listing| {
            let known = |segment: &Unreadable| (segment.name.clone(), segment.error.is_unreachable());
            let is_same = listing.failure.is_none()
                && listing.segments.as_ref().is_some_and(|old| {
                    old.segments == list.segments
                        && old.unreadable.iter().map(known).eq(list.unreadable.iter().map(known))
                });
            if is_same {
                return false;
            }
            for unreadable in &list.unreadable {
                tracing::error!(
                    segment = %unreadable.name,
                    error = error_chain(&unreadable.error),
                    "a segment cannot be read"
                );
            }
            *listing =
                Listing { segments: Some(Arc::new(list)), failure: None, announced: listing.announced };
            true
        });
    }

    fn fail(&self, error: &HistoryError) {
        if self.listing.borrow().failure.is_none() {
            tracing::error!(error = error_chain(error), "the segments cannot be listed");
        }
        let failure = Some(error_chain(error).into());
        self.listing.send_modify(|listing| listing.failure = failure);
    }
}

/// The chain of the database, when it answers and has one.
async fn stored_chain(store: &Store) -> Option<String> {
    if !store.state().is_there {
        return None;
    }
    let row = store.point("SELECT (SELECT id FROM chain) AS id", &[], None).await.ok()?;
    row.try_get::<_, Option<String>>("id").ok()?.filter(|id| !id.is_empty())
}

/// The pause after a listing that took `took`.
fn pause(period: Duration, took: Duration) -> Duration {
    period.max((took * PAUSE_FACTOR).min(MAX_PAUSE))
}

impl Actor for Catalogue {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.is_listing = false;
        self.next = None;
        self.list(context);
        let Some(bus) = self.bus.clone() else { return };
        let myself = context.address();
        let listing = self.listing.clone();
        let refreshing = async move {
            let mut news = match bus.subscribe::<SegmentStatus>().await {
                Ok(news) => news,
                Err(error) => return tracing::error!(%error, "cannot subscribe to announcements of segments"),
            };
            while let Some(SegmentStatus { height_to }) = news.next().await {
                let announce = |announced| {
                    listing.send_if_modified(|listing| {
                        listing.announced = announced;
                        false
                    })
                };
                announce(height_to);
                if myself.send(Refresh).await.is_err() {
                    return;
                }
                announce(0);
            }
        };
        context.spawn(refreshing.into_actor(self));
    }
}

impl Supervised for Catalogue {}

impl Handler<Refresh> for Catalogue {
    type Result = ResponseFuture<Listing>;

    fn handle(&mut self, _: Refresh, context: &mut Self::Context) -> Self::Result {
        let (caller, answer) = oneshot::channel();
        self.waiting.push(caller);
        self.list(context);
        let last = self.listing.subscribe();
        Box::pin(async move { answer.await.unwrap_or_else(|_| last.borrow().clone()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_store_is_listed_less_often() {
        let (period, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!(pause(period, ms(20)), period);
        assert_eq!(pause(period, ms(600)), Duration::from_secs(12));
        assert_eq!(pause(period, ms(6000)), MAX_PAUSE);
        assert_eq!(pause(Duration::from_secs(60), ms(6000)), Duration::from_secs(60));
    }
}
