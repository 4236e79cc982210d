//! The watchers of the drills of the whole mesh. They watch rows that change, rows and lists that do not, and reads
//! of node and relay; most watch one read, some several on one stream.
//!
//! Rows that change while they are watched, independently of each other and of blocks. Their versions are counted,
//! so that a state older than an earlier one is detected.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
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
use tokio_util::sync::CancellationToken;

use super::{
    judge::BACK_WITHIN,
    record::{Over, State, Watch, WatchRecord, digest},
    watchers::Watchers,
};
use crate::{
    private::{self, Servers},
    rig::{
        faults::explanation::{FailedRequest, FaultSpan, is_explained},
        public::PublicAccess,
        report::{Report, in_ms},
        world::World,
    },
};

const CHANGING: usize = 20;
/// One of this many clients watches several reads, and how many.
const SEVERAL_ONE_OF: usize = 5;
const SEVERAL: usize = 4;
/// Longest time from the last change until all clients have the current state: without a block a watch is re-read
/// after 10 s at the latest, and a client that lost its stream reconnects.
const DELIVERED_WITHIN: Duration = Duration::from_secs(20);

/// Clients that watch while rows change.
pub(crate) struct WatchTraffic {
    watchers: Watchers,
    changes: Changes,
    versions: Arc<Mutex<Versions>>,
}

pub(crate) struct WatchResults {
    pub(crate) record: WatchRecord,
    /// Clients whose last state differs from a plain read.
    differences: Vec<String>,
    contradictions: Vec<String>,
    changes: usize,
}

/// The versions in answers, by the numbers of their contents.
type Versions = HashMap<usize, u64>;

impl WatchTraffic {
    /// Starts this many clients with an event stream, and with a WebSocket.
    pub(crate) fn start(
        world: &World<'_>,
        event_streams: usize,
        web_sockets: usize,
    ) -> Result<Self, Failure> {
        let secured = world.public.as_ref().map(PublicAccess::secured).transpose()?;
        let (changing, mut reads) = world.read_requests.watched(CHANGING);
        reads.splice(0..0, changing.clone());
        let read = |number: usize| Arc::clone(&reads[number % reads.len()]);
        let watches = (0..event_streams + web_sockets).map(|client| {
            let over = if client < event_streams { Over::EventStream } else { Over::WebSocket };
            let reads = match client % SEVERAL_ONE_OF {
                0 => (0..SEVERAL).map(|other| read(client * 7 + other * 11)).collect(),
                _ => vec![read(client)],
            };
            Watch { reads, over }
        });
        let versions = Arc::<Mutex<Versions>>::default();
        let found = Arc::clone(&versions);
        let watchers = Watchers::start(
            world.edges.cached,
            secured,
            watches.collect(),
            Arc::new(move |body| {
                let number = digest(body)?;
                found.lock().extend(version(body).map(|version| (number, version)));
                Some(number)
            }),
        );
        Ok(Self { watchers, changes: Changes::start(&world.servers, changing), versions })
    }

    /// Numbers of requests sent and of answers received so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.watchers.counts()
    }

    /// Stops the changes, waits until every client has the current state, and stops the clients.
    pub(crate) async fn end(self) -> Result<WatchResults, Failure> {
        let Self { watchers, changes, versions } = self;
        let changes = changes.end().await?;
        let differences = watchers.differences(DELIVERED_WITHIN).await;
        let record = watchers.end().await;
        let mut contradictions =
            record.contradictions(|path, from, to| may_have_changed(&changes, path, from, to));
        contradictions.extend(older_versions(&record, &versions.lock()));
        Ok(WatchResults { record, differences, contradictions, changes: changes.len() })
    }
}

/// Versions that are older than an earlier one of the same client: on one stream, or at a greater height.
fn older_versions(record: &WatchRecord, versions: &Versions) -> Vec<String> {
    let mut found = Vec::new();
    for (client, streams) in record.by_client() {
        let reads = &record.watches[client].reads;
        let mut newest: Vec<(u64, u64)> = vec![(0, 0); reads.len()];
        for stream in streams {
            let mut newest_here = vec![0; reads.len()];
            for received in &stream.received {
                let State::Answer { height, content } = received.what else { continue };
                let Some(&version) = versions.get(&content) else { continue };
                let (at, before) = newest[received.read];
                if version < newest_here[received.read] || version < before && height > at {
                    found.push(format!(
                        "version {version} at height {height} after version {before} at height {at} to client {client} ({})",
                        reads[received.read]
                    ));
                }
                newest_here[received.read] = version;
                newest[received.read] = newest[received.read].max((height, version));
            }
        }
    }
    found
}

impl WatchResults {
    /// Adds the bars of every drill: the received states are consistent, and the last ones equal plain reads.
    pub(crate) fn are_true(&self, report: &mut Report) {
        let Self { record, differences, contradictions, changes } = self;
        let events = record.answers();
        let what = format!(
            "states sent to {} watchers during {changes} changes of rows that are older than before or sent twice",
            record.watches.len()
        );
        report.bar_none_of(&what, contradictions.len(), events);
        report.bar_none("watchers that end with another answer than a plain read", differences.len());
        report.messages.extend(contradictions.iter().chain(differences).cloned());
    }

    /// Adds the bars of a drill in which edges shut down: every client soon reconnects and receives no problem.
    pub(crate) fn are_resumed(&self, report: &mut Report, restarts: &[FaultSpan]) {
        let misses = self.record.misses();
        let (ended, unexplained): (Vec<_>, Vec<_>) =
            misses.iter().partition(|miss| is_explained(miss, restarts, Duration::ZERO));
        let what = format!(
            "streams of watchers that broke, were rejected, or took more than {BACK_WITHIN:?} to resume, and \
             problems received ({} streams ended with their edge)",
            ended.len()
        );
        let text = |miss: &FailedRequest| format!("{:?}: {}", miss.failure, miss.message);
        report.bar_empty(&what, unexplained.into_iter().map(text).collect());
        self.describe_absences(report);
    }

    /// Adds a note of how long clients were without a stream.
    pub(crate) fn describe_absences(&self, report: &mut Report) {
        let longest = self.record.absences().iter().map(|absence| absence.length()).max().unwrap_or_default();
        report.notes.push(format!("the longest time without a stream: {}", in_ms(longest)));
    }
}

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
    end: CancellationToken,
    changing: JoinHandle<Vec<Change>>,
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
        let end = CancellationToken::new();
        let changing = tokio::spawn(run(end.clone(), servers.database.url().to_owned(), paths));
        Self { end, changing }
    }

    /// Stops after the current change; returns all changes.
    pub(crate) async fn end(self) -> Result<Vec<Change>, Failure> {
        self.end.cancel();
        match self.changing.await.map_err(|error| cannot("change rows", &error))? {
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

async fn run(end: CancellationToken, url: String, paths: Vec<Arc<str>>) -> Vec<Change> {
    let (mut client, mut ticks, mut made) = (None, interval(PACE), Vec::new());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for path in paths.iter().cycle() {
        ticks.tick().await;
        if end.is_cancelled() {
            break;
        }
        let (begun, number) = (Instant::now(), NEXT.fetch_add(1, Ordering::Relaxed));
        let changed = timeout(ANSWER_WITHIN, change(&url, &mut client, number, path)).await;
        if changed != Ok(Some(())) {
            client = None;
        }
        // A failed change may have been committed, and one that timed out may still be committed a little later.
        let over = Instant::now() + if changed.is_err() { ANSWER_WITHIN } else { Duration::ZERO };
        made.push(Change { path: Arc::clone(path), when: (begun, over) });
    }
    made
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
