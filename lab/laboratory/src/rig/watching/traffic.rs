//! The watchers of the drills of the whole mesh. They watch rows that change, rows and lists that do not, and reads
//! of node and relay; most watch one read, some several on one stream.

use std::{collections::HashMap, sync::Arc, time::Duration};

use mesh::failure::Failure;
use parking_lot::Mutex;

use super::{
    changes::{self, Changes},
    judge::BACK_WITHIN,
    record::{Over, State, Watch, WatchRecord},
    watchers::Watchers,
};
use crate::rig::{
    faults::explanation::{FailedRequest, FaultSpan, is_explained},
    public::PublicAccess,
    report::{self, Report, in_ms},
    world::World,
};

/// Rows that change.
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
    contents: Arc<Contents>,
}

/// The results of a run.
pub(crate) struct WatchResults {
    pub(crate) record: WatchRecord,
    /// Clients whose last state differs from a plain read.
    differences: Vec<String>,
    /// Further contradictions.
    contradictions: Vec<String>,
    changes: usize,
}

/// Numbers of bodies, and the versions in them.
#[derive(Default)]
struct Contents {
    numbers: Mutex<HashMap<Vec<u8>, usize>>,
    versions: Mutex<Vec<Option<u64>>>,
}

impl Contents {
    fn number(&self, body: &[u8]) -> usize {
        let mut numbers = self.numbers.lock();
        if let Some(number) = numbers.get(body) {
            return *number;
        }
        let mut versions = self.versions.lock();
        versions.push(changes::version(body));
        numbers.insert(body.to_vec(), versions.len() - 1);
        versions.len() - 1
    }
}

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
        let contents = Arc::<Contents>::default();
        let numbering = Arc::clone(&contents);
        let watchers = Watchers::start(
            world.edges.cached,
            secured,
            watches.collect(),
            Arc::new(move |body| Some(numbering.number(body))),
        );
        Ok(Self { watchers, changes: Changes::start(&world.servers, changing), contents })
    }

    /// Numbers of requests sent and of answers received so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.watchers.counts()
    }

    /// Stops the changes, waits until every client has the current state, and stops the clients.
    pub(crate) async fn end(self) -> Result<WatchResults, Failure> {
        let Self { watchers, changes, contents } = self;
        let changes = changes.end().await?;
        let differences = watchers.differences(DELIVERED_WITHIN).await;
        let record = watchers.end().await;
        let mut contradictions =
            record.contradictions(|path, from, to| changes::may_have_changed(&changes, path, from, to));
        contradictions.extend(older_versions(&record, &contents.versions.lock()));
        Ok(WatchResults { record, differences, contradictions, changes: changes.len() })
    }
}

/// Versions that are older than an earlier one of the same client: on one stream, or at a greater height.
fn older_versions(record: &WatchRecord, versions: &[Option<u64>]) -> Vec<String> {
    let mut found = Vec::new();
    for (client, streams) in record.by_client() {
        let reads = &record.watches[client].reads;
        let mut newest: Vec<(u64, u64)> = vec![(0, 0); reads.len()];
        for stream in streams {
            let mut newest_here = vec![0; reads.len()];
            for received in &stream.received {
                let State::Answer { height, content } = received.what else { continue };
                let Some(version) = versions[content] else { continue };
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
    pub(crate) fn are_true<F: report::Figures>(&self, report: &mut Report<F>) {
        let Self { record, differences, contradictions, changes } = self;
        let events = record.answers();
        report.bar(
            format!(
                "states sent to {} watchers during {changes} changes of rows that are older than before or sent twice: \
                 {} of {events}, at most 0",
                record.watches.len(),
                contradictions.len()
            ),
            contradictions.is_empty() && events > 0,
        );
        report.bar(
            format!(
                "watchers that end with another answer than a plain read: {}, at most 0",
                differences.len()
            ),
            differences.is_empty(),
        );
        report.messages.extend(contradictions.iter().chain(differences).cloned());
    }

    /// Adds the bars of a drill in which edges shut down: every client soon reconnects and receives no problem.
    pub(crate) fn are_resumed<F: report::Figures>(&self, report: &mut Report<F>, restarts: &[FaultSpan]) {
        let misses = self.record.misses();
        let unexplained: Vec<&FailedRequest> =
            misses.iter().filter(|miss| !is_explained(miss, restarts, Duration::ZERO)).collect();
        let ended = misses.len() - unexplained.len();
        report.bar(
            format!(
                "streams of watchers that broke, were rejected, or took more than {BACK_WITHIN:?} to resume, and \
                 problems received: {}, at most 0; streams that ended with their edge: {ended}",
                unexplained.len()
            ),
            unexplained.is_empty(),
        );
        report
            .messages
            .extend(unexplained.iter().map(|miss| format!("{:?}: {}", miss.failure, miss.message)));
        self.describe_absences(report);
    }

    /// Adds a note of how long clients were without a stream.
    pub(crate) fn describe_absences<F: report::Figures>(&self, report: &mut Report<F>) {
        let longest = self.record.absences().iter().map(|absence| absence.length()).max().unwrap_or_default();
        report.notes.push(format!("the longest time without a stream: {}", in_ms(longest)));
    }
}
