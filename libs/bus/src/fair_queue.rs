//! A queue that is fair to clients.

use std::collections::{HashMap, VecDeque};

/// A queue that serves its clients in turn, and each client's entries in their order.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    by_client: HashMap<u64, VecDeque<T>>,
    /// Each client with entries once.
    turns: VecDeque<u64>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { by_client: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Number of entries of all clients.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most entries that are served before a further one of this client.
    pub(crate) fn ahead_of(&self, client: u64) -> usize {
        let own = self.by_client.get(&client).map_or(0, VecDeque::len);
        self.len.min((own + 1) * self.turns.len())
    }

    /// Adds the last entry of a client.
    pub(crate) fn push(&mut self, client: u64, entry: T) {
        let entries = self.by_client.entry(client).or_default();
        if entries.is_empty() {
            self.turns.push_back(client);
        }
        entries.push_back(entry);
        self.len += 1;
    }

    /// Takes the first entry of the client whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let client = self.turns.pop_front()?;
        let entries = self.by_client.get_mut(&client)?;
        let entry = entries.pop_front()?;
        self.len -= 1;
        match entries.is_empty() {
            true => drop(self.by_client.remove(&client)),
            false => self.turns.push_back(client),
        }
        Some(entry)
    }
}
