//! Server-sent events, read strictly: lines that the contract does not have are an error.

use serde_json::Value;

/// A block of lines of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The id, if it has one.
    pub id: Option<u64>,
    /// Whether it clears the last event id: an id without a value.
    pub clears_id: bool,
    /// The name; empty in a block without an event.
    pub name: String,
    /// The data, on one line.
    pub data: String,
    /// The comment, without its colon.
    pub comment: Option<String>,
    /// The reconnect delay, milliseconds.
    pub retry: Option<u64>,
}

impl Event {
    /// The data as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn parse(block: &str) -> Option<Self> {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':')?;
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" => event.comment = Some(value.to_owned()),
                "id" if value.is_empty() => event.clears_id = true,
                "id" => event.id = Some(value.parse().ok()?),
                "event" => value.clone_into(&mut event.name),
                "data" if event.data.is_empty() => value.clone_into(&mut event.data),
                "retry" => event.retry = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(event)
    }
}

/// Splits the bytes of a stream into blocks.
#[derive(Debug, Default)]
pub struct EventReader {
    unread: Vec<u8>,
}

impl EventReader {
    /// Adds received bytes.
    pub fn push(&mut self, piece: &[u8]) {
        self.unread.extend_from_slice(piece);
    }

    /// Whether a part of a block has been received.
    pub fn is_torn(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The next complete block.
    ///
    /// # Errors
    /// When its lines are not those of an event.
    pub fn next_event(&mut self) -> Result<Option<Event>, String> {
        let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") else { return Ok(None) };
        let block: Vec<u8> = self.unread.drain(..end + 2).collect();
        let text = std::str::from_utf8(&block[..end]).map_err(|error| error.to_string())?;
        Event::parse(text).map(Some).ok_or_else(|| format!("these lines are no event: {text}"))
    }
}
