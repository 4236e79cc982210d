//! Where store and node stand, as far as this edge has heard: by the news on the bus, and by the replies themselves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use mesh_bus::{ANNOUNCE_INTERVAL, Bus, BusError, NodeStatus, StoreStatus};
use mesh_chassis::LagLimit;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// News older than this say nothing any more.
const NEWS_LAST: Duration = ANNOUNCE_INTERVAL.saturating_mul(8);

/// How long a failed read waits for the news that the store is away: the failure may be known before its reason.
const REASON_WITHIN: Duration = Duration::from_millis(150);

/// The store can only have been set back when its news say so for this long.
const SET_BACK_AFTER: Duration = Duration::from_secs(2);

/// Shared by all requests.
#[derive(Debug)]
pub(crate) struct Heads {
    /// Height of the newest block of the store that anybody has told of.
    newest: AtomicU64,
    store: watch::Sender<Option<Told<StoreStatus>>>,
    node: watch::Sender<Option<Told<NodeStatus>>>,
}

#[derive(Debug, Clone, Copy)]
struct Told<N> {
    news: N,
    at: Instant,
}

impl<N> Told<N> {
    fn now(news: N) -> Option<Self> {
        Some(Self { news, at: Instant::now() })
    }

    fn is_current(&self) -> bool {
        self.at.elapsed() < NEWS_LAST
    }
}

impl Default for Heads {
    fn default() -> Self {
        Self { newest: AtomicU64::new(0), store: watch::Sender::new(None), node: watch::Sender::new(None) }
    }
}

impl Heads {
    /// Follows the news from now on.
    ///
    /// # Errors
    /// When the bus is closed for good.
    pub(crate) async fn follow(self: &Arc<Self>, bus: &Bus) -> Result<(), BusError> {
        let (mut store, mut node) =
            (bus.subscribe::<StoreStatus>().await?, bus.subscribe::<NodeStatus>().await?);
        let heads = Arc::clone(self);
        tokio::spawn(async move {
            let mut lower_since = None;
            loop {
                tokio::select! {
                    Some(news) = store.next() => heads.told(news, &mut lower_since),
                    Some(news) = node.next() => drop(heads.node.send_replace(Told::now(news))),
                    else => return,
                }
            }
        });
        Ok(())
    }

    /// Height of the store's newest block, as far as known; 0 = none.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// A reply was read at this height.
    pub(crate) fn seen(&self, height: u64) {
        self.newest.fetch_max(height, Ordering::AcqRel);
    }

    /// Whether the store is away, for somebody whose read has just failed.
    pub(crate) async fn is_store_away(&self) -> bool {
        let mut news = self.store.subscribe();
        let away = |told: &Option<Told<StoreStatus>>| {
            told.is_some_and(|told| told.is_current() && !told.news.is_there)
        };
        timeout(REASON_WITHIN, news.wait_for(away)).await.is_ok_and(|told| told.is_ok())
    }

    /// Height of the store by its last news, unless these are old.
    pub(crate) fn store(&self) -> Option<u64> {
        self.store_news()?.head.map(|head| head.height)
    }

    /// Height of the node by its last news, unless these are old.
    pub(crate) fn node(&self) -> Option<u64> {
        let told = (*self.node.borrow()).filter(|told| told.at.elapsed() < LagLimit::HEIGHT_MAX_AGE)?;
        Some(told.news.height)
    }

    /// The last news of the store, unless these are old.
    pub(crate) fn store_news(&self) -> Option<StoreStatus> {
        let told = (*self.store.borrow()).filter(|told| told.at.elapsed() < LagLimit::HEIGHT_MAX_AGE)?;
        Some(told.news)
    }

    fn told(&self, news: StoreStatus, lower_since: &mut Option<Instant>) {
        let height = news.head.map_or(0, |head| head.height);
        if height >= self.newest() || !news.is_there {
            *lower_since = None;
            self.seen(height);
        } else if lower_since.get_or_insert_with(Instant::now).elapsed() > SET_BACK_AFTER {
            tracing::warn!(height, newest = self.newest(), "the store was set back");
            *lower_since = None;
            self.newest.store(height, Ordering::Release);
        }
        self.store.send_replace(Told::now(news));
    }
}

#[cfg(test)]
mod tests {
    use mesh_bus::Head;

    use super::*;

    fn news(height: u64, is_there: bool) -> StoreStatus {
        StoreStatus { head: Some(Head { height, time_ns: 0 }), is_there }
    }

    #[test]
    fn the_newest_block_is_the_highest_that_was_told_or_seen() {
        let (heads, mut lower) = (Heads::default(), None);
        heads.told(news(5, true), &mut lower);
        heads.seen(7);
        heads.told(news(6, true), &mut lower);
        assert_eq!(heads.newest(), 7);
        heads.told(news(8, true), &mut lower);
        assert_eq!((heads.newest(), lower), (8, None));
    }

    #[test]
    fn a_store_that_was_set_back_is_believed_after_a_while() {
        let (heads, mut lower) = (Heads::default(), None);
        heads.seen(7);
        lower.replace(Instant::now().checked_sub(SET_BACK_AFTER * 2).unwrap());
        heads.told(news(3, false), &mut lower);
        assert_eq!(heads.newest(), 7, "one that is away cannot say");
        heads.told(news(3, true), &mut lower);
        assert_eq!(heads.newest(), 7, "it may be a late word");
        lower.replace(Instant::now().checked_sub(SET_BACK_AFTER * 2).unwrap());
        heads.told(news(3, true), &mut lower);
        assert_eq!(heads.newest(), 3);
    }

    #[tokio::test]
    async fn a_failed_read_learns_whether_the_store_is_away() {
        let heads = Arc::new(Heads::default());
        assert!(!heads.is_store_away().await, "nothing is known");
        let waiting = tokio::spawn({
            let heads = Arc::clone(&heads);
            async move { heads.is_store_away().await }
        });
        heads.told(news(3, true), &mut None);
        tokio::task::yield_now().await;
        heads.told(news(3, false), &mut None);
        assert!(waiting.await.unwrap());
    }
}
