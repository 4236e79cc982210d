//! What each key uses (K4): counted by operation, recorded once a minute on standard output and on the bus.

use std::{
    collections::HashSet,
    io::{self, Write},
    mem,
    sync::Arc,
};

use mesh_bus::{Bus, KeyUsage};
use parking_lot::Mutex;
use tokio::{
    sync,
    task::spawn_blocking,
    time::{Duration, Instant, interval_at, timeout},
};

use crate::keys::ClientKey;

/// Time between two records of a key's use of an operation.
const INTERVAL: Duration = Duration::from_secs(60);

/// Longest time for the last records at a stop.
const LAST_RECORDS_WITHIN: Duration = Duration::from_secs(3);

/// What the keys have used since the last records.
#[derive(Debug)]
pub(crate) struct Usage {
    bus: Bus,
    /// The keys in force, and removed ones until they are no longer used and recorded.
    keys: Mutex<Vec<Arc<ClientKey>>>,
    /// When the last records were written; held while new ones are.
    since: sync::Mutex<String>,
}

/// What one key uses, by operation.
#[derive(Debug, Default)]
pub(crate) struct KeyMeters(Mutex<Vec<Arc<Meter>>>);

/// What one key uses of one operation.
#[derive(Debug)]
pub(crate) struct Meter {
    operation: &'static str,
    counted: Mutex<Counted>,
}

#[derive(Debug, Clone)]
struct Counted {
    requests: u64,
    refused: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// Open watches.
    watches: u32,
    /// For how long watches were open until `at`.
    watched: Duration,
    at: Instant,
}

impl Usage {
    /// Begins to count, and to write records every minute.
    pub(crate) fn start(bus: Bus) -> Arc<Self> {
        let since = sync::Mutex::new(mesh_chassis::timestamp());
        let usage = Arc::new(Self { bus, keys: Mutex::default(), since });
        let told = Arc::clone(&usage);
        tokio::spawn(async move {
            let mut pace = interval_at(Instant::now() + INTERVAL, INTERVAL);
            loop {
                pace.tick().await;
                told.write_records().await;
            }
        });
        usage
    }

    /// Records these keys in addition to earlier ones.
    pub(crate) fn follow<'a>(&self, in_force: impl Iterator<Item = &'a Arc<ClientKey>>) {
        let mut keys = self.keys.lock();
        let known: HashSet<*const ClientKey> = keys.iter().map(Arc::as_ptr).collect();
        keys.extend(in_force.filter(|key| !known.contains(&Arc::as_ptr(key))).cloned());
    }

    /// Writes the last records at a stop.
    pub(crate) async fn finish(&self) {
        if timeout(LAST_RECORDS_WITHIN, self.write_records()).await.is_err() {
            tracing::warn!("the last usage records could not be written");
        }
        self.bus.flush(LAST_RECORDS_WITHIN).await;
    }

    /// Writes and publishes what was used since the last records. While standard output takes none, nothing is lost:
    /// the next records have it.
    async fn write_records(&self) {
        let mut since = self.since.lock().await;
        let to = mesh_chassis::timestamp();
        let records = self.take(&since, &to);
        *since = to;
        if records.is_empty() {
            return;
        }
        let lines: Vec<_> = records.iter().filter_map(|record| serde_json::to_string(record).ok()).collect();
        let written = spawn_blocking(move || {
            let mut out = io::stdout().lock();
            lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush())
        });
        if let Err(error) = written.await.map_err(io::Error::other).flatten() {
            tracing::warn!(%error, "usage records could not be written to standard output");
        }
        drop(since);
        for record in &records {
            self.bus.announce(record).await;
        }
    }

    /// Takes the counts, and forgets keys and meters that nothing else uses.
    fn take(&self, from: &str, to: &str) -> Vec<KeyUsage> {
        let mut records = Vec::new();
        self.keys.lock().retain(|key| {
            // Nothing begins with a key that only this list has; open answers hold its meters.
            let is_held = Arc::strong_count(key) > 1;
            key.meters().0.lock().retain(|meter| {
                // Before its counts are taken: the last answer counts before it drops the meter.
                let is_open = Arc::strong_count(meter) > 1;
                let used = meter.counted.lock().take(Instant::now());
                let is_used = used.requests + used.refused + used.bytes_in + used.bytes_out > 0;
                let watch_seconds = used.watched.as_secs();
                if is_used || watch_seconds > 0 {
                    records.push(KeyUsage {
                        target: "usage".to_owned(),
                        key: key.name().to_string(),
                        operation: meter.operation.to_owned(),
                        requests: used.requests,
                        refused: used.refused,
                        bytes_in: used.bytes_in,
                        bytes_out: used.bytes_out,
                        watch_seconds,
                        from: from.to_owned(),
                        to: to.to_owned(),
                    });
                }
                is_open
            });
            is_held || !key.meters().0.lock().is_empty()
        });
        records
    }
}

impl KeyMeters {
    /// Counts a request of an operation.
    pub(crate) fn begin(&self, operation: &'static str) -> Arc<Meter> {
        let mut meters = self.0.lock();
        let known = meters.iter().position(|meter| meter.operation == operation);
        let index = known.unwrap_or_else(|| {
            meters.push(Arc::new(Meter { operation, counted: Mutex::new(Counted::from(Instant::now())) }));
            meters.len() - 1
        });
        meters[index].begin();
        Arc::clone(&meters[index])
    }
}

impl Counted {
    fn from(at: Instant) -> Self {
        Self { requests: 0, refused: 0, bytes_in: 0, bytes_out: 0, watches: 0, watched: Duration::ZERO, at }
    }

    /// Adds the time of the open watches until now.
    fn watch(&mut self, now: Instant) {
        self.watched += now.duration_since(self.at) * self.watches;
        self.at = now;
    }

    /// Takes the counts. The rest of a second stays while a watch is open, and is rounded otherwise.
    fn take(&mut self, now: Instant) -> Self {
        self.watch(now);
        let mut next = Self { watches: self.watches, ..Self::from(now) };
        if self.watches > 0 {
            next.watched = Duration::from_nanos(self.watched.subsec_nanos().into());
        } else {
            self.watched += Duration::from_millis(500);
        }
        mem::replace(self, next)
    }
}

impl Meter {
    /// The operation that it counts.
    pub(super) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Counts one more request.
    pub(crate) fn begin(&self) {
        self.counted.lock().requests += 1;
    }

    /// Counts a refusal of a request that was counted.
    pub(crate) fn refuse(&self) {
        self.counted.lock().refused += 1;
    }

    /// Counts bytes of a request's body.
    pub(crate) fn receive(&self, bytes: usize) {
        self.counted.lock().bytes_in += bytes as u64;
    }

    /// Counts bytes of an answer's body.
    pub(crate) fn send(&self, bytes: usize) {
        self.counted.lock().bytes_out += bytes as u64;
    }

    /// Counts a watch as open until the guard is dropped.
    pub(crate) fn watch(self: &Arc<Self>) -> OpenWatch {
        let mut counted = self.counted.lock();
        counted.watch(Instant::now());
        counted.watches += 1;
        OpenWatch(Arc::clone(self))
    }
}

/// An open watch.
#[derive(Debug)]
pub(crate) struct OpenWatch(Arc<Meter>);

impl Drop for OpenWatch {
    fn drop(&mut self) {
        let mut counted = self.0.counted.lock();
        counted.watch(Instant::now());
        counted.watches -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_watches_is_taken_while_they_are_open() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut counted = Counted::from(start);
        counted.watches = 1;
        counted.watch(at(1500));
        counted.watches = 2;
        assert_eq!(counted.take(at(2500)).watched.as_secs(), 3, "of 3.5 s");
        counted.watches = 1;
        counted.watch(at(3200));
        counted.watches = 0;
        assert_eq!(counted.take(at(9000)).watched.as_secs(), 1, "of 1.2 s");
        assert_eq!(counted.take(at(9000)).watched.as_secs(), 0);
    }
}
