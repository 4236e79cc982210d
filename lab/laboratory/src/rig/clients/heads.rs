//! Records the store's head over time, read directly from the database, to determine how old an answer was.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_postgres::Client;

use crate::{
    private::{Servers, connected},
    private_chain::head,
};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a query; after it a new connection is opened.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Polls the head of a store until dropped.
pub(crate) struct HeadObserver {
    seen: Arc<Mutex<Vec<(Instant, u64)>>>,
    _polling: JoinSet<()>,
}

impl HeadObserver {
    pub(crate) fn watch(servers: &Servers) -> Self {
        let (seen, url) = (Arc::<Mutex<Vec<(Instant, u64)>>>::default(), servers.database.url().to_owned());
        let noted = Arc::clone(&seen);
        let mut polling = JoinSet::new();
        polling.spawn(async move {
            let (mut client, mut ticks) = (None, interval(POLL_INTERVAL));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                match timeout(ANSWER_WITHIN, poll_head(&url, &mut client)).await {
                    Ok(Some(height)) => {
                        let mut seen = noted.lock();
                        if seen.last().is_none_or(|(_, last)| *last < height) {
                            seen.push((Instant::now(), height));
                        }
                    }
                    Ok(None) | Err(_) => client = None,
                }
            }
        });
        Self { seen, _polling: polling }
    }

    /// How long, at least, the store had had a newer head when an answer of this height was requested.
    pub(crate) fn outdated(&self, height: u64, asked: Instant) -> Duration {
        outdated(&self.seen.lock(), height, asked)
    }
}

async fn poll_head(url: &str, client: &mut Option<Client>) -> Option<u64> {
    head(connected(url, client).await.ok()?).await.ok()
}

fn outdated(seen: &[(Instant, u64)], height: u64, asked: Instant) -> Duration {
    let next = seen.partition_point(|(_, other)| *other <= height);
    seen.get(next).map_or(Duration::ZERO, |(since, _)| asked.saturating_duration_since(*since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_outdated_since_the_next_block() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let seen = [(at(0), 5), (at(1), 6), (at(3), 8)];
        let of = |height, asked| outdated(&seen, height, at(asked)).as_secs();
        assert_eq!((of(5, 0), of(5, 1), of(5, 4)), (0, 0, 3));
        assert_eq!((of(6, 4), of(7, 4), of(8, 9), of(9, 9)), (1, 1, 0, 0));
        assert_eq!(outdated(&[], 1, at(1)), Duration::ZERO);
    }
}
