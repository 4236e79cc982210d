//! Watches over HTTP/2, many on one connection.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use mesh_testbed::http2::{
    ACCEPT, AUTHORITY, Connection, DATA, END_STREAM, Frame, GOAWAY, RST_STREAM, get_request,
};

use super::watchers::{Shared, StreamEnd};
use crate::watches::{EventReader, OPENED_AT_ONCE, connect};

impl Shared {
    /// Watches for these clients on one connection; when it breaks, their streams have ended.
    pub(super) async fn watch_over_http2(self: Arc<Self>, clients: Range<usize>) {
        let indexes: Vec<usize> = clients.map(|client| self.begin(client, None)).collect();
        let Err(end) = self.follow_over_http2(&indexes).await;
        for index in indexes {
            self.end(index, end.clone());
        }
    }

    async fn follow_over_http2(&self, indexes: &[usize]) -> Result<std::convert::Infallible, StreamEnd> {
        let broken = |error: std::io::Error| StreamEnd::Broken(format!("over HTTP/2: {error}"));
        let ended = |what: &str| Err(StreamEnd::Broken(format!("over HTTP/2: {what}")));
        let mut turn = match &self.turns {
            Some(turns) => turns.acquire_many(OPENED_AT_ONCE as u32).await.ok(),
            None => None,
        };
        let source = self.stream_of(indexes[0]).0;
        let stream = connect(self.edge, source, None).await.map_err(broken)?;
        let mut connection = Connection::wide(stream).await.map_err(broken)?;
        let fields = [(AUTHORITY, "laboratory"), (ACCEPT, "text/event-stream")];
        let mut streams = HashMap::new();
        for (index, stream) in indexes.iter().zip((1..).step_by(2)) {
            let request = get_request(&self.watches[self.stream_of(*index).0].path(), &fields);
            connection.send(&Frame::request(stream, &request)).await.map_err(broken)?;
            streams.insert(stream, (*index, EventReader::new(1)));
            self.open(*index);
        }
        let mut silent: HashSet<u32> = streams.keys().copied().collect();
        loop {
            let frame = connection.frame_after_pings().await.map_err(broken)?;
            match frame.kind {
                RST_STREAM | GOAWAY => return ended("a watch was reset"),
                DATA if frame.flags & END_STREAM != 0 => {
                    return ended(&format!("a watch has ended: {}", String::from_utf8_lossy(&frame.payload)));
                }
                DATA => {}
                _ => continue,
            }
            let Some((index, events)) = streams.get_mut(&frame.stream) else {
                return ended("an event of a stream that was not asked for");
            };
            if self.receive(*index, &frame.payload, events)?
                && silent.remove(&frame.stream)
                && silent.is_empty()
            {
                turn.take();
            }
        }
    }
}
