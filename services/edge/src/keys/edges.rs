//! The edges that are alive: they share the limits of each key (K3), and know each other by their announcements.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use futures_util::StreamExt;
use mesh_bus::{ANNOUNCE_INTERVAL, Bus, BusError, EdgePresence};
use tokio::time::{Duration, Instant, interval, sleep, timeout};

/// An edge that was silent for so long has ended.
const SILENCE: Duration = ANNOUNCE_INTERVAL.saturating_mul(3);

/// Time limit of the announcement of a stop.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// The number of edges.
#[derive(Debug)]
pub(crate) struct LiveEdges {
    bus: Bus,
    id: String,
    /// How many there are, with this one.
    count: AtomicU32,
    is_leaving: AtomicBool,
}

impl LiveEdges {
    /// Announces this edge and listens for the others. Returns once each of them has announced itself again: an edge that
    /// knows no other gives every key its whole limits.
    ///
    /// # Errors
    /// When the bus is closed for good.
    pub(crate) async fn start(bus: Bus) -> Result<Arc<Self>, BusError> {
        let mut announced = bus.subscribe::<EdgePresence>().await?;
        let (id, count) = (nuid::next().to_string(), AtomicU32::new(1));
        let edges = Arc::new(Self { bus, id, count, is_leaving: AtomicBool::default() });
        let following = Arc::clone(&edges);
        tokio::spawn(async move {
            let (mut others, mut pace) = (Others::default(), interval(ANNOUNCE_INTERVAL));
            loop {
                tokio::select! {
                    Some(presence) = announced.next() => {
                        if presence.id != following.id {
                            others.record(presence, Instant::now());
                        }
                    }
                    _ = pace.tick() => {
                        following.announce().await;
                        others.expire(Instant::now(), following.bus.is_connected());
                    }
                }
                following.count.store(1 + others.count(), Ordering::Relaxed);
            }
        });
        sleep(ANNOUNCE_INTERVAL).await;
        Ok(edges)
    }

    /// How many edges share a limit.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Announces that this edge stops.
    pub(crate) async fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        // A bus that takes nothing must not delay the stop.
        let _ = timeout(LEAVE_WITHIN, self.announce()).await;
    }

    async fn announce(&self) {
        let is_leaving = self.is_leaving.load(Ordering::Relaxed);
        self.bus.announce(&EdgePresence { id: self.id.clone(), is_leaving }).await;
    }
}

/// The other edges, and when the last announcement of each arrived.
#[derive(Debug, Default)]
struct Others {
    heard: HashMap<String, Instant>,
    /// Ends of those that left: an announcement sent before may arrive after it.
    left: HashMap<String, Instant>,
}

impl Others {
    fn record(&mut self, presence: EdgePresence, now: Instant) {
        if presence.is_leaving {
            self.heard.remove(&presence.id);
            self.left.insert(presence.id, now);
        } else if !self.left.contains_key(&presence.id) {
            self.heard.insert(presence.id, now);
        }
    }

    /// Removes the silent ones. Without the bus no announcement arrives, and all stay.
    fn expire(&mut self, now: Instant, is_connected: bool) {
        if is_connected {
            self.heard.retain(|_, heard| now.duration_since(*heard) < SILENCE);
        } else {
            self.heard.values_mut().for_each(|heard| *heard = now);
        }
        self.left.retain(|_, left| now.duration_since(*left) < SILENCE);
    }

    fn count(&self) -> u32 {
        u32::try_from(self.heard.len()).unwrap_or(u32::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(id: &str, is_leaving: bool) -> EdgePresence {
        EdgePresence { id: id.to_owned(), is_leaving }
    }

    #[test]
    fn an_edge_counts_until_it_leaves_or_is_silent() {
        let (mut others, mut now) = (Others::default(), Instant::now());
        others.record(presence("a", false), now);
        others.record(presence("b", false), now);
        others.record(presence("a", true), now);
        others.record(presence("a", false), now);
        assert_eq!(others.count(), 1, "an announcement from before the end does not count");
        now += SILENCE;
        others.expire(now, false);
        assert_eq!(others.count(), 1, "without the bus no announcement arrives");
        others.expire(now + SILENCE, true);
        assert_eq!((others.count(), others.left.len()), (0, 0));
    }
}
