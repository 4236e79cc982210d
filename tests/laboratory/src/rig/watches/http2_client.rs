//! Watches over HTTP/2, many on one connection.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Instant};

use mesh::failure::Failure;
use mesh_testbed::{
    http2::{ACCEPT, AUTHORITY, Connection, DATA, END_STREAM, Frame, GOAWAY, RST_STREAM, get_request},
    poll,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::OPEN_WITHIN;
use crate::watches::{HeightAt, connect, events::EventReader};

/// The observations of the clients.
#[derive(Debug, Default)]
struct Seen {
    received: Vec<HeightAt>,
    /// Watches that have had their first event.
    open: usize,
    failures: Vec<String>,
}

/// Watches on connections of HTTP/2, until they are dropped.
pub(super) struct Http2Clients {
    /// Aborts them when it is dropped.
    _tasks: JoinSet<()>,
    seen: Arc<Mutex<Seen>>,
}

impl Http2Clients {
    /// Opens `count` watches, `each` of them per connection, and waits until each has its first event.
    ///
    /// # Errors
    /// When a watch has none in time.
    pub(super) async fn open(
        edge: SocketAddr,
        paths: &[String],
        count: usize,
        each: usize,
    ) -> Result<Self, Failure> {
        let (seen, paths) = (Arc::<Mutex<Seen>>::default(), Arc::<[String]>::from(paths));
        let mut tasks = JoinSet::new();
        for first in (0..count).step_by(each) {
            let (seen, paths) = (Arc::clone(&seen), Arc::clone(&paths));
            tasks.spawn(async move {
                let numbers = first..(first + each).min(count);
                let Err(error) = watch(edge, first, numbers, &paths, &seen).await;
                seen.lock().failures.push(format!("watches over HTTP/2 broke: {error}"));
            });
        }
        let clients = Self { _tasks: tasks, seen };
        let are_open = async || {
            let (open, failures) = clients.state();
            if open == count {
                return Ok(());
            }
            let (broken, first) = (failures.len(), failures.first());
            let reason = format!(
                "only {open} of {count} watches over HTTP/2 are open, {broken} connections broke: {first:?}"
            );
            Err(Failure::failed(reason))
        };
        poll(OPEN_WITHIN, are_open).await?;
        Ok(clients)
    }

    fn state(&self) -> (usize, Vec<String>) {
        let seen = self.seen.lock();
        (seen.open, seen.failures.clone())
    }

    /// Why connections broke.
    pub(super) fn failures(&self) -> Vec<String> {
        self.state().1
    }

    /// Heights received from this time on.
    pub(super) fn received_since(&self, from: Instant) -> Vec<HeightAt> {
        self.seen.lock().received.iter().filter(|(_, at)| *at >= from).copied().collect()
    }
}

/// Watches on one connection.
async fn watch(
    edge: SocketAddr,
    source: usize,
    numbers: std::ops::Range<usize>,
    paths: &[String],
    seen: &Mutex<Seen>,
) -> std::io::Result<std::convert::Infallible> {
    let mut connection = Connection::wide(connect(edge, source, None).await?).await?;
    for (number, stream) in numbers.zip((1..).step_by(2)) {
        let fields = [(AUTHORITY, "laboratory"), (ACCEPT, "text/event-stream")];
        connection.send(&Frame::request(stream, &get_request(&paths[number % paths.len()], &fields))).await?;
    }
    let mut streams: HashMap<u32, (EventReader, bool)> = HashMap::new();
    loop {
        let frame = connection.frame_after_pings().await?;
        match frame.kind {
            RST_STREAM | GOAWAY => return Err(std::io::Error::other("a watch was reset")),
            DATA if frame.flags & END_STREAM != 0 => {
                let last = String::from_utf8_lossy(&frame.payload);
                return Err(std::io::Error::other(format!("a watch has ended: {last}")));
            }
            DATA => {}
            _ => continue,
        }
        let now = Instant::now();
        let (events, is_open) = streams.entry(frame.stream).or_default();
        events.push(&frame.payload);
        while let Some(event) = events.next().map_err(std::io::Error::other)? {
            let Some(height) = event.height else { continue };
            let mut seen = seen.lock();
            seen.received.push((height, now));
            seen.open += usize::from(!std::mem::replace(is_open, true));
        }
    }
}
