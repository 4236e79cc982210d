//! The newest blocks of store and node, by their announcements on the bus and by the heights of replies.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use mesh_bus::{ANNOUNCE_INTERVAL, Bus, BusError, IngestHalt, NodeStatus, StoreStatus};
use mesh_chassis::LagLimit;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// Announcements older than this do not count.
const NEWS_VALID_FOR: Duration = ANNOUNCE_INTERVAL.saturating_mul(3);

/// How long a request waits for an announcement that may follow: after a failed read that the store is unavailable,
/// before a resumed watch the height that its client has seen.
const NEWS_WAIT: Duration = Duration::from_millis(150);

/// A head is taken as reset to an older block once its announcements have been lower for this long.
const RESET_AFTER: Duration = Duration::from_secs(2);

/// Distinguishes a reset head from late announcements and from those of a replica that is behind.
#[derive(Debug, Default)]
struct ResetDetector {
    lower_since: Option<Instant>,
}

impl ResetDetector {
    /// Whether the head, of which `newest` is known, was reset to the height of this announcement.
    fn is_reset(&mut self, height: u64, newest: u64) -> bool {
        if height >= newest {
            self.lower_since = None;
            return false;
        }
        let is_reset = self.lower_since.get_or_insert_with(Instant::now).elapsed() > RESET_AFTER;
        if is_reset {
            self.lower_since = None;
        }
        is_reset
    }
}

/// What the replicas of `node-info` announce of the store. One that cannot reach it, or has just started, does not
/// contradict the others.
#[derive(Debug, Default)]
struct StoreReports {
    /// Those that reach the store, and when each of them last said so.
    reached: HashMap<u64, Instant>,
    detector: ResetDetector,
}

impl StoreReports {
    /// Whether an announcement counts: of a store that is there, or that no replica reaches.
    fn counts(&mut self, news: StoreStatus) -> bool {
        self.reached.retain(|replica, at| *replica != news.replica && at.elapsed() < NEWS_VALID_FOR);
        if news.is_there {
            self.reached.insert(news.replica, Instant::now());
        }
        news.is_there || self.reached.is_empty()
    }
}

/// The head that an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadSource {
    /// The newest block of the store.
    Store,
    /// The newest block of the consensus node.
    Node,
}

/// The known status of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadStatus {
    /// Height of the newest block; 0 = none known.
    pub(crate) height: u64,
    /// Whether the last announcement is recent and the store is available, so that the next block will be
    /// announced.
    pub(crate) is_followed: bool,
    /// Number of resets to an older block so far.
    pub(crate) resets: u64,
}

/// The newest blocks known.
#[derive(Debug, Default)]
pub(crate) struct ChainHeads {
    /// Height of the newest block of the store, by announcements and replies.
    newest: AtomicU64,
    /// When the last reset of the store was noticed.
    reset_at: Mutex<Option<Instant>>,
    /// Number of resets of each head.
    store_resets: AtomicU64,
    node_resets: AtomicU64,
    store: watch::Sender<Option<Timed<StoreStatus>>>,
    node: watch::Sender<Option<Timed<NodeStatus>>>,
    halt: Mutex<Option<Timed<IngestHalt>>>,
    /// Notified when the status of the store's head changes.
    store_changed: watch::Sender<()>,
    /// Notified when the status of the node's head changes.
    node_changed: watch::Sender<()>,
}

#[derive(Debug, Clone, Copy)]
struct Timed<N> {
    news: N,
    at: Instant,
}

impl<N> Timed<N> {
    fn now(news: N) -> Option<Self> {
        Some(Self { news, at: Instant::now() })
    }

    fn is_current(&self) -> bool {
        self.at.elapsed() < NEWS_VALID_FOR
    }

    /// Whether its height may still be shown and compared.
    fn is_usable(&self) -> bool {
        self.at.elapsed() < LagLimit::HEIGHT_MAX_AGE
    }
}

impl ChainHeads {
    /// Follows the announcements from now on.
    ///
    /// # Errors
    /// When the bus is closed for good.
    pub(crate) async fn follow(self: &Arc<Self>, bus: &Bus) -> Result<(), BusError> {
        let (mut store, mut node) =
            (bus.subscribe::<StoreStatus>().await?, bus.subscribe::<NodeStatus>().await?);
        let mut halts = bus.subscribe::<IngestHalt>().await?;
        let heads = Arc::clone(self);
        tokio::spawn(async move {
            let (mut of_store, mut of_node) = (StoreReports::default(), ResetDetector::default());
            loop {
                tokio::select! {
                    Some(news) = store.next() => heads.update_store(news, &mut of_store),
                    Some(news) = node.next() => heads.update_node(news, &mut of_node),
                    Some(news) = halts.next() => *heads.halt.lock() = Timed::now(news),
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

    /// Whether the store was reset after this time: answers read before are of other blocks.
    pub(crate) fn was_reset_since(&self, at: Instant) -> bool {
        self.reset_at.lock().is_some_and(|reset_at| at <= reset_at)
    }

    /// Records the height of a reply.
    pub(crate) fn observe(&self, height: u64) {
        if self.newest.fetch_max(height, Ordering::AcqRel) < height {
            self.store_changed.send_replace(());
        }
    }

    /// The current status of a head.
    pub(crate) fn status(&self, source: HeadSource) -> HeadStatus {
        let (height, is_followed, resets) = match source {
            HeadSource::Store => {
                let latest = *self.store.borrow();
                let is_followed = latest.is_some_and(|latest| latest.is_current() && latest.news.is_there);
                (self.newest(), is_followed, &self.store_resets)
            }
            HeadSource::Node => {
                let latest = *self.node.borrow();
                let height = latest.map_or(0, |latest| latest.news.height);
                (height, latest.is_some_and(|latest| latest.is_current()), &self.node_resets)
            }
        };
        HeadStatus { height, is_followed, resets: resets.load(Ordering::Acquire) }
    }

    /// Notifies of each change of a head's status, except of the end of announcements.
    pub(crate) fn changes(&self, source: HeadSource) -> watch::Receiver<()> {
        match source {
            HeadSource::Store => self.store_changed.subscribe(),
            HeadSource::Node => self.node_changed.subscribe(),
        }
    }

    /// Waits until a head is at the height of a client's last event, but not for long: the network may have been reset. An
    /// edge that has just started waits for its first announcement.
    pub(crate) async fn until_at(&self, source: HeadSource, height: u64) {
        let limit = if self.status(source).height == 0 { NEWS_VALID_FOR } else { NEWS_WAIT };
        let mut changes = self.changes(source);
        let is_there = changes.wait_for(|()| self.status(source).height >= height);
        let _ = timeout(limit, is_there).await;
    }

    /// Whether the store is unavailable; called after a failed read.
    pub(crate) async fn is_store_away(&self) -> bool {
        let mut news = self.store.subscribe();
        let away = |latest: &Option<Timed<StoreStatus>>| {
            latest.is_some_and(|latest| latest.is_current() && !latest.news.is_there)
        };
        timeout(NEWS_WAIT, news.wait_for(away)).await.is_ok_and(|latest| latest.is_ok())
    }

    /// Height of the store by its last announcement, unless that is old.
    pub(crate) fn store(&self) -> Option<u64> {
        self.store_news()?.head.map(|head| head.height)
    }

    /// Height of the node by its last announcement, unless that is old.
    pub(crate) fn node(&self) -> Option<u64> {
        Some(self.node.borrow().filter(Timed::is_usable)?.news.height)
    }

    /// The last announcement of the store, unless that is old.
    pub(crate) fn store_news(&self) -> Option<StoreStatus> {
        Some(self.store.borrow().filter(Timed::is_usable)?.news)
    }

    /// The block that cannot be stored, by the last announcement, unless that is old or the block is stored.
    pub(crate) fn halt(&self) -> Option<IngestHalt> {
        let latest = (*self.halt.lock()).filter(Timed::is_current)?;
        Some(latest.news).filter(|halt| halt.height > self.newest())
    }

    fn update_store(&self, news: StoreStatus, reports: &mut StoreReports) {
        if !reports.counts(news) {
            return;
        }
        let height = news.head.map_or(0, |head| head.height);
        if !news.is_there {
            reports.detector = ResetDetector::default();
            self.observe(height);
        } else if reports.detector.is_reset(height, self.newest()) {
            tracing::warn!(height, newest = self.newest(), "the store was reset to an older block");
            self.reset(height);
        } else {
            self.observe(height);
        }
        let before = self.store.send_replace(Timed::now(news));
        if before.is_none_or(|before| before.news.is_there != news.is_there) {
            self.store_changed.send_replace(());
        }
    }

    /// Takes an older block as the newest one of the store.
    pub(super) fn reset(&self, height: u64) {
        *self.reset_at.lock() = Some(Instant::now());
        self.store_resets.fetch_add(1, Ordering::AcqRel);
        self.newest.store(height, Ordering::Release);
        self.store_changed.send_replace(());
    }

    /// Of several replicas' announcements the highest counts.
    fn update_node(&self, news: NodeStatus, detector: &mut ResetDetector) {
        let newest = self.node.borrow().map_or(0, |latest| latest.news.height);
        let height = match detector.is_reset(news.height, newest) {
            true => {
                tracing::warn!(height = news.height, newest, "the node was reset to an older block");
                self.node_resets.fetch_add(1, Ordering::AcqRel);
                news.height
            }
            false => news.height.max(newest),
        };
        let news = NodeStatus { height };
        let before = self.node.send_replace(Timed::now(news));
        if before.is_none_or(|before| before.news != news) {
            self.node_changed.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use mesh_bus::Head;

    use super::*;

    fn news(height: u64, is_there: bool) -> StoreStatus {
        StoreStatus { head: Some(Head { height, time_ns: 0 }), is_there, replica: 0 }
    }

    #[test]
    fn the_newest_block_is_the_highest_announced_or_replied() {
        let (heads, mut reports) = (ChainHeads::default(), StoreReports::default());
        heads.update_store(news(5, true), &mut reports);
        heads.observe(7);
        heads.update_store(news(6, true), &mut reports);
        assert_eq!(heads.newest(), 7);
        heads.update_store(news(8, true), &mut reports);
        assert_eq!((heads.newest(), reports.detector.lower_since), (8, None));
    }

    /// A detector to which announcements were lower for long.
    fn after_long() -> ResetDetector {
        ResetDetector { lower_since: Some(Instant::now().checked_sub(RESET_AFTER * 2).unwrap()) }
    }

    #[test]
    fn a_replica_that_cannot_reach_the_store_does_not_contradict_one_that_can() {
        let (heads, mut reports) = (ChainHeads::default(), StoreReports::default());
        let mut told = |replica, is_there| {
            heads.update_store(StoreStatus { replica, ..news(5, is_there) }, &mut reports);
            heads.status(HeadSource::Store).is_followed
        };
        let news = [(1, false), (2, true), (1, false), (2, false), (1, true), (2, true), (1, false)];
        let is_followed = news.map(|(replica, is_there)| told(replica, is_there));
        assert_eq!(is_followed, [false, true, true, false, true, true, true]);
    }

    #[test]
    fn a_store_that_was_reset_is_believed_after_a_while() {
        let reports = || StoreReports { detector: after_long(), ..StoreReports::default() };
        let (heads, mut before_away) = (ChainHeads::default(), reports());
        heads.observe(7);
        heads.update_store(news(3, false), &mut before_away);
        assert_eq!(heads.newest(), 7, "an unavailable store is ignored");
        heads.update_store(news(3, true), &mut before_away);
        assert_eq!(heads.newest(), 7, "it may be a late announcement");
        let before = Instant::now();
        assert!(!heads.was_reset_since(before));
        heads.update_store(news(3, true), &mut reports());
        assert_eq!(heads.newest(), 3);
        assert!(heads.was_reset_since(before) && !heads.was_reset_since(Instant::now() + RESET_AFTER));
    }

    #[test]
    fn of_several_nodes_the_highest_counts_until_all_have_been_lower_for_a_while() {
        let (heads, mut detector) = (ChainHeads::default(), ResetDetector::default());
        let announced = |height, detector: &mut ResetDetector| {
            heads.update_node(NodeStatus { height }, detector);
            heads.status(HeadSource::Node).height
        };
        assert_eq!(announced(7, &mut detector), 7);
        assert_eq!(announced(6, &mut detector), 7, "late, or of a node that is behind");
        assert!(detector.lower_since.is_some());
        assert_eq!(announced(7, &mut detector), 7);
        assert_eq!(detector.lower_since, None, "one that is behind for long does not count");
        assert_eq!(announced(3, &mut after_long()), 3);
        assert_eq!(announced(4, &mut detector), 4);
    }

    #[test]
    fn a_change_of_a_head_is_told_and_a_repeated_announcement_is_not() {
        let (heads, mut reports) = (ChainHeads::default(), StoreReports::default());
        let (mut store, node) = (heads.changes(HeadSource::Store), heads.changes(HeadSource::Node));
        let mut is_notified = |height, is_there| {
            heads.update_store(news(height, is_there), &mut reports);
            let is_notified = store.has_changed().unwrap();
            store.borrow_and_update();
            (is_notified, heads.status(HeadSource::Store))
        };
        let status = |height, is_followed| HeadStatus { height, is_followed, resets: 0 };
        assert_eq!(is_notified(5, true), (true, status(5, true)));
        assert_eq!(is_notified(5, true), (false, status(5, true)));
        assert_eq!(is_notified(5, false), (true, status(5, false)), "the store is unavailable");
        assert_eq!(is_notified(6, true), (true, status(6, true)));
        heads.observe(7);
        assert!(store.has_changed().unwrap(), "a reply was newer");
        assert!(!node.has_changed().unwrap() && !heads.status(HeadSource::Node).is_followed);
        heads.update_node(NodeStatus { height: 9 }, &mut ResetDetector::default());
        assert!(node.has_changed().unwrap());
        assert_eq!(heads.status(HeadSource::Node), status(9, true));
    }

    #[tokio::test]
    async fn a_failed_read_waits_for_the_announcement_that_the_store_is_away() {
        let heads = Arc::new(ChainHeads::default());
        assert!(!heads.is_store_away().await, "nothing was announced");
        let waiting = tokio::spawn({
            let heads = Arc::clone(&heads);
            async move { heads.is_store_away().await }
        });
        heads.update_store(news(3, true), &mut StoreReports::default());
        tokio::task::yield_now().await;
        heads.update_store(news(3, false), &mut StoreReports::default());
        assert!(waiting.await.unwrap());
    }
}
