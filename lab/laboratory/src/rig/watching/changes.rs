//! Rows that change while they are watched, independently of each other and of blocks. Their versions are counted,
//! so that a state older than an earlier one is detected.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use mesh::failure::{Failure, cannot};
use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_postgres::Client;

use crate::private::{self, Servers};

/// Time between two changes.
const PACE: Duration = Duration::from_millis(200);
/// Time limit of a statement.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The next version: greater than all earlier ones, including those of an earlier run on the same store.
static NEXT: AtomicU64 = AtomicU64::new(1_000_000);
const CHANGE: &str = "UPDATE withdrawals SET ref = $1::bigint::text WHERE id = $2";

/// How long after a change a plain read may still return the previous state (contract J13).
const SEEN_WITHIN: Duration = Duration::from_millis(1500);

/// Changes the withdrawals of these paths in turn until it is stopped.
pub(crate) struct Changes {
    shared: Arc<Shared>,
    changing: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    made: Mutex<Vec<Change>>,
}

/// A change: its path, its start, and a time at which it was certainly complete.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    path: Arc<str>,
    when: (Instant, Instant),
}

impl Changes {
    /// Starts to change the rows.
    pub(crate) fn start(servers: &Servers, paths: Vec<Arc<str>>) -> Self {
        let (shared, url) = (Arc::<Shared>::default(), servers.database_url.clone());
        let changing = tokio::spawn(run(Arc::clone(&shared), url, paths));
        Self { shared, changing }
    }

    /// Stops after the current change; returns all changes.
    ///
    /// # Errors
    /// When there were none.
    pub(crate) async fn end(self) -> Result<Vec<Change>, Failure> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.changing.await.map_err(|error| cannot("change rows", &error))?;
        match std::mem::take(&mut *self.shared.made.lock()) {
            made if made.is_empty() => Err(Failure::failed("no row was changed")),
            made => Ok(made),
        }
    }
}

/// Whether the answer to this path may have changed in this time, as clients see it.
pub(crate) fn may_have_changed(changes: &[Change], path: &str, from: Instant, to: Instant) -> bool {
    changes
        .iter()
        .any(|change| *change.path == *path && change.when.0 <= to && from <= change.when.1 + SEEN_WITHIN)
}

/// The version in an answer to one of these paths.
pub(crate) fn version(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("\"ref\":\"")?;
    rest.split('"').next()?.parse().ok()
}

async fn run(shared: Arc<Shared>, url: String, paths: Vec<Arc<str>>) {
    let (mut client, mut ticks) = (None, interval(PACE));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for path in paths.iter().cycle() {
        ticks.tick().await;
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let (begun, number) = (Instant::now(), NEXT.fetch_add(1, Ordering::Relaxed));
        let changed = timeout(ANSWER_WITHIN, change(&url, &mut client, number, path)).await;
        if changed != Ok(Some(())) {
            client = None;
        }
        // A failed change may have been committed, and one that timed out may still be committed a little later.
        let over = Instant::now() + if changed.is_err() { ANSWER_WITHIN } else { Duration::ZERO };
        shared.made.lock().push(Change { path: Arc::clone(path), when: (begun, over) });
    }
}

async fn change(url: &str, client: &mut Option<Client>, number: u64, path: &str) -> Option<()> {
    let id = path.rsplit('/').next().unwrap_or_default();
    let client = private::connected(url, client).await.ok()?;
    client.execute(CHANGE, &[&number.cast_signed(), &id]).await.ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_a_little_later() {
        let at = |ms| Duration::from_millis(ms);
        let begun = Instant::now();
        let made = [Change { path: "/a".into(), when: (begun + at(1000), begun + at(1100)) }];
        let changed = |path, from, to| may_have_changed(&made, path, begun + at(from), begun + at(to));
        assert!(changed("/a", 0, 1000) && changed("/a", 2500, 3000) && changed("/a", 1050, 1060));
        assert!(!changed("/a", 0, 999) && !changed("/a", 2601, 3000) && !changed("/b", 0, 2000));
        assert_eq!(version(br#"{"withdrawal":{"id":"a","ref":"1000007","txHash":""}}"#), Some(1_000_007));
        assert_eq!(version(b"{}"), None);
    }
}
