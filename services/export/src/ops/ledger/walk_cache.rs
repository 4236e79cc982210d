//! Walks that wait for the next pull of their export, which then starts with rows that were read ahead
//! instead of waiting for the database. An optimisation only: any replica answers any pull without it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use mesh_bus::Position;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::walk::Filter;

/// Most walks, each with the rows of about one pull and the accounts that it has looked up.
const MAX_WALKS: usize = 16;

/// Time to live. A reader slower than this does not wait for the database anyway.
const TTL: Duration = Duration::from_secs(2);

/// Walks (`W`) that can be continued.
pub(crate) struct WalkCache<W> {
    walks: Mutex<VecDeque<CacheEntry<W>>>,
}

struct CacheEntry<W> {
    filter: Filter,
    position: Position,
    walk: W,
    expires: Instant,
}

impl<W> Default for WalkCache<W> {
    fn default() -> Self {
        Self { walks: Mutex::default() }
    }
}

impl<W: Send + 'static> WalkCache<W> {
    /// Inserts a walk along these entries that has come to a position; evicts the oldest when there are too
    /// many.
    pub(crate) fn insert(self: &Arc<Self>, filter: Filter, position: Position, walk: W) {
        let expires = Instant::now() + TTL;
        {
            let mut walks = self.walks.lock();
            if walks.len() >= MAX_WALKS {
                walks.pop_front();
            }
            walks.push_back(CacheEntry { filter, position, walk, expires });
        }
        let cache = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(TTL).await;
            if let Some(cache) = cache.upgrade() {
                cache.evict(expires);
            }
        });
    }

    /// Removes and returns the walk along these entries that has come to a position.
    pub(crate) fn take(&self, filter: &Filter, position: &Position) -> Option<W> {
        let mut walks = self.walks.lock();
        let found = walks.iter().position(|entry| entry.position == *position && entry.filter == *filter)?;
        walks.remove(found).map(|entry| entry.walk)
    }

    /// Evicts the walks that have expired by `now`.
    fn evict(&self, now: Instant) {
        self.walks.lock().retain(|entry| entry.expires > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(party: &str) -> Filter {
        Filter { party: party.to_owned(), asset: "X".to_owned(), until: None }
    }

    fn at(number: u8) -> Position {
        Position::new(vec![number]).unwrap()
    }

    #[tokio::test]
    async fn a_walk_is_taken_once_by_the_pull_that_continues_it() {
        let cache = Arc::new(WalkCache::default());
        cache.insert(of("p"), at(1), "p at 1");
        cache.insert(of("q"), at(1), "q at 1");
        assert_eq!(cache.take(&of("p"), &at(2)), None);
        assert_eq!(cache.take(&of("r"), &at(1)), None);
        assert_eq!(cache.take(&of("q"), &at(1)), Some("q at 1"));
        assert_eq!(cache.take(&of("q"), &at(1)), None);
        assert_eq!(cache.take(&of("p"), &at(1)), Some("p at 1"));
    }

    #[tokio::test]
    async fn walks_expire_and_the_oldest_is_evicted() {
        let cache = Arc::new(WalkCache::default());
        for number in 0..=MAX_WALKS {
            cache.insert(of("p"), at(u8::try_from(number).unwrap()), number);
        }
        assert_eq!(cache.take(&of("p"), &at(0)), None, "the oldest");
        assert_eq!(cache.take(&of("p"), &at(1)), Some(1));
        let expires = cache.walks.lock().back().unwrap().expires;
        cache.insert(of("p"), at(99), 99);
        cache.evict(expires);
        assert_eq!(cache.walks.lock().len(), 1);
        assert_eq!(cache.take(&of("p"), &at(99)), Some(99));
    }
}
