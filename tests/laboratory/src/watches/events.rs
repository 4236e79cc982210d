//! A strict reader of event streams: input outside the contract is an error.

use std::time::Duration;

use bytes::Bytes;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Index of the read, on a stream of several.
    pub(crate) read: usize,
    /// The height of an answer; `None` for a problem.
    pub(crate) height: Option<u64>,
    /// The body.
    pub(crate) data: Bytes,
}

/// Splits the bytes of a stream into events.
#[derive(Default)]
pub(crate) struct EventReader {
    unread: Vec<u8>,
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
        self.unread.extend_from_slice(piece);
    }

    /// Whether a part of an event has been received.
    pub(crate) fn is_torn(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The next complete event.
    ///
    /// # Errors
    /// When the lines are neither an event nor a heartbeat.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, String> {
        while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.unread.drain(..end + 2).collect();
            let text = std::str::from_utf8(&block[..end]).map_err(|error| error.to_string())?;
            let event = self.parse(text).ok_or_else(|| format!("these lines are no event: {text}"))?;
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// The event of a block of lines, if they are one; `None` when they are malformed.
    fn parse(&mut self, text: &str) -> Option<Option<Event>> {
        let (mut id, mut name, mut data, mut comment) = (None, None, None, None);
        for line in text.lines() {
            let (field, value) = line.split_once(": ")?;
            match field {
                "" => comment = Some(value.parse::<u64>().ok()?),
                "retry" => self.retry = Some(Duration::from_millis(value.parse().ok()?)),
                "id" => id = Some(value.parse::<u64>().ok()?),
                "event" => name = Some(value),
                "data" if data.is_none() => data = Some(value),
                _ => return None,
            }
        }
        let Some(name) = name else {
            return (comment.is_some() && id.is_none() && data.is_none()).then_some(None);
        };
        let (kind, read) = match name.split_once('-') {
            Some((kind, read)) if self.is_indexed => (kind, read.parse().ok()?),
            None if !self.is_indexed => (name, 0),
            _ => return None,
        };
        let is_known = matches!((kind, id), ("answer", Some(_)) | ("problem", None));
        let data = Bytes::copy_from_slice(data?.as_bytes());
        is_known.then_some(Some(Event { read, height: id, data }))
    }
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
        let event = |read, height, data: &'static str| Event { read, height, data: data.into() };
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
