//! Shared by the benchmarks and the drills of watches: many connections from one machine, blocks that change the
//! watched rows, and the events of a stream, whose input outside the contract is an error.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use mesh_testbed::{
    events::{self, EventReader as BlockReader},
    http1::Dial,
};
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_postgres::Client;

use crate::{
    private::{Servers, connected},
    private_chain::NEXT_BLOCK,
    rig::clients::connection::KEY,
};

/// Connections of one local address, far below the edge's limit for one address.
pub(crate) const PER_ADDRESS: usize = 500;
pub(crate) const OPENED_AT_ONCE: usize = 64;

/// The time between two blocks.
const PERIOD: Duration = Duration::from_secs(1);

/// A height, and when it was committed or received.
pub(crate) type HeightAt = (u64, Instant);

/// Opens a client's connection; clients of consecutive numbers share a local address.
pub(crate) async fn connect(
    edge: SocketAddr,
    number: usize,
    receive_buffer: Option<u32>,
) -> std::io::Result<TcpStream> {
    let last = u8::try_from(number / PER_ADDRESS + 2).unwrap_or(u8::MAX);
    let source = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    Dial { source, receive_buffer }.connect(edge).await
}

/// The request for a watch over HTTP/1.1, from a client whose last height is this one.
pub(crate) fn watch_request(path: &str, last_id: Option<u64>) -> String {
    let last_id = last_id.map(|height| format!("Last-Event-ID: {height}\r\n")).unwrap_or_default();
    format!(
        "GET {path} HTTP/1.1\r\nHost: laboratory\r\nAuthorization: Bearer {KEY}\r\nAccept: text/event-stream\r\n\
         {last_id}\r\n"
    )
}

pub(crate) struct Changes {
    /// The statement that changes rows: `$1` is the new text, the block's height, `$2` the rows' ids.
    pub(crate) statement: &'static str,
    /// The ids of the rows that change with the block of a height.
    pub(crate) ids: Box<dyn Fn(u64) -> Vec<String> + Send + Sync>,
}

/// A block a second until this is dropped. A database that restarts delays blocks.
pub(crate) struct Blocks {
    written: Arc<Mutex<Vec<HeightAt>>>,
    _writing: JoinSet<()>,
}

impl Blocks {
    /// Starts to write blocks with these changes, or empty ones.
    pub(crate) fn write(servers: &Servers, changes: Option<Changes>) -> Self {
        let (url, written) = (servers.database.url().to_owned(), Arc::<Mutex<Vec<HeightAt>>>::default());
        let (noted, mut writing) = (Arc::clone(&written), JoinSet::new());
        writing.spawn(async move {
            let (mut client, mut ticks) = (None, interval(PERIOD));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                match write_block(&url, &mut client, changes.as_ref()).await {
                    Ok(height) => noted.lock().push((height, Instant::now())),
                    Err(_) => client = None,
                }
            }
        });
        Self { written, _writing: writing }
    }

    /// The blocks that were committed in this period.
    pub(crate) fn written(&self, from: Instant, to: Instant) -> Vec<HeightAt> {
        self.written.lock().iter().filter(|(_, at)| *at >= from && *at <= to).copied().collect()
    }
}

async fn write_block(
    url: &str,
    client: &mut Option<Client>,
    changes: Option<&Changes>,
) -> Result<u64, Failure> {
    let wrong = |error| cannot("write a block", &error);
    let transaction = connected(url, client).await?.transaction().await.map_err(wrong)?;
    let height: i64 = transaction.query_one(NEXT_BLOCK, &[]).await.map_err(wrong)?.get(0);
    if let Some(Changes { statement, ids }) = changes {
        let ids = ids(height.unsigned_abs());
        transaction.execute(*statement, &[&height.to_string(), &ids]).await.map_err(wrong)?;
    }
    transaction.commit().await.map_err(wrong)?;
    Ok(height.unsigned_abs())
}

/// The times from each block's COMMIT to each receipt by a client.
pub(crate) fn delays(written: &[HeightAt], received: &[HeightAt]) -> Vec<Duration> {
    let committed: HashMap<u64, Instant> = written.iter().copied().collect();
    let delay = |(height, at): &HeightAt| Some(at.saturating_duration_since(*committed.get(height)?));
    received.iter().filter_map(delay).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Index of the read, on a stream of several.
    pub(crate) read: usize,
    /// The height of an answer; `None` for a problem.
    pub(crate) height: Option<u64>,
    pub(crate) data: String,
}

/// Splits the bytes of a stream into events.
#[derive(Default)]
pub(crate) struct EventReader {
    blocks: BlockReader,
    /// Whether events are named by the index of their read.
    is_indexed: bool,
    /// The reconnect delay of the `retry` line.
    pub(crate) retry: Option<Duration>,
}

impl EventReader {
    /// A reader of a stream of this many reads.
    pub(crate) fn new(reads: usize) -> Self {
        Self { is_indexed: reads > 1, ..Self::default() }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.blocks.push(piece);
    }

    /// Whether a part of an event has been received.
    pub(crate) fn is_torn(&self) -> bool {
        self.blocks.is_torn()
    }

    /// The next complete event.
    ///
    /// # Errors
    /// When the lines are neither an event nor a heartbeat.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, String> {
        while let Some(block) = self.blocks.next_event()? {
            self.retry = block.retry.map(Duration::from_millis).or(self.retry);
            if is_heartbeat(&block) {
                continue;
            }
            let Some(read) = self.read_of(&block) else {
                return Err(format!("neither an event nor a heartbeat: {block:?}"));
            };
            return Ok(Some(Event { read, height: block.id, data: block.data }));
        }
        Ok(None)
    }

    /// The index of the read that an event is of.
    fn read_of(&self, block: &events::Event) -> Option<usize> {
        let (kind, read) = match block.name.split_once('-') {
            Some((kind, read)) if self.is_indexed => (kind, read.parse().ok()?),
            None if !self.is_indexed => (&*block.name, 0),
            _ => return None,
        };
        let is_known = matches!((kind, block.id), ("answer", Some(_)) | ("problem", None));
        (is_known && !block.clears_id && !block.data.is_empty()).then_some(read)
    }
}

fn is_heartbeat(block: &events::Event) -> bool {
    let events::Event { id, clears_id, name, data, comment, .. } = block;
    let height = comment.as_ref().and_then(|comment| comment.parse::<u64>().ok());
    height.is_some() && id.is_none() && !clears_id && name.is_empty() && data.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_counts_from_the_commit_of_the_received_block() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let received = [(4, at(11)), (5, at(14)), (6, at(20)), (5, at(30))];
        assert_eq!(delays(&[(5, at(10)), (6, at(20))], &received), [4, 0, 20].map(Duration::from_millis));
    }

    fn events(reads: usize, text: &str) -> Result<Vec<Event>, String> {
        let (mut reader, mut events) = (EventReader::new(reads), Vec::new());
        for piece in text.as_bytes().chunks(5) {
            reader.push(piece);
            while let Some(event) = reader.next()? {
                events.push(event);
            }
        }
        if reader.is_torn() { Err("torn".to_owned()) } else { Ok(events) }
    }

    #[test]
    fn only_what_the_contract_names_is_an_event() {
        let event = |read, height, data: &str| Event { read, height, data: data.to_owned() };
        let one = "retry: 1000\n: 4\n\nid: 5\nevent: answer\ndata: {\"a\":\": 1\"}\n\n: 6\n\nevent: problem\ndata: {}\n\n";
        assert_eq!(events(1, one), Ok(vec![event(0, Some(5), "{\"a\":\": 1\"}"), event(0, None, "{}")]));
        let two = "id: 5\nevent: answer-0\ndata: 1\n\nevent: problem-1\ndata: 2\n\n";
        assert_eq!(events(2, two), Ok(vec![event(0, Some(5), "1"), event(1, None, "2")]));
        for malformed in [
            two,
            "event: answer\ndata: 1\n\n",
            "id: 1\nevent: problem\ndata: 1\n\n",
            "id: 1\nevent: answer\n\n",
            "id: 1\nevent: answer\ndata: 1\ndata: 2\n\n",
            "id: 1\n\n",
            "id: x\nevent: answer\ndata: 1\n\n",
            "id: 1\nevent: answer\ndata: 1\n",
            "name: 1\n\n",
        ] {
            events(1, malformed).unwrap_err();
        }
        let mut reader = EventReader::new(1);
        reader.push(one.as_bytes());
        assert_eq!(
            (reader.next().unwrap().unwrap().height, reader.retry),
            (Some(5), Some(Duration::from_secs(1)))
        );
    }
}
