//! The states that a stream of events sends: input outside the contract is an error.

use std::time::Duration;

use mesh_testbed::events::{self, EventReader as BlockReader};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Index of the read, on a stream of several.
    pub(crate) read: usize,
    /// The height of an answer; `None` for a problem.
    pub(crate) height: Option<u64>,
    /// The body.
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

    /// Adds received bytes.
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
