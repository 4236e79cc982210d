//! The simulated store: it compares its head as the real one does, and trusts its writers for the rest.

use mesh_ingest::order::{Event, Head, Link};

/// The stored blocks, from height 1.
#[derive(Default)]
pub(super) struct Store {
    pub(super) blocks: Vec<Link>,
    pub(super) transactions: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Transaction {
    /// The head that its replica knows.
    pub(super) before: Option<Head>,
    pub(super) from: u64,
    pub(super) links: Vec<Link>,
}

impl Transaction {
    /// The height of its last block.
    pub(super) fn to(&self) -> u64 {
        self.from + self.links.len() as u64 - 1
    }
}

impl Store {
    pub(super) fn height(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn head(&self) -> Option<Head> {
        let link = self.blocks.last()?;
        Some(Head { height: self.height(), hash: link.hash.clone() })
    }

    /// The answer to a read.
    pub(super) fn read(&self) -> Event {
        Event::Store(self.blocks.last().map(|link| link.chain_id.clone()), self.head())
    }

    /// Loses its newest blocks, as in a failover.
    pub(super) fn lose(&mut self, blocks: u64) {
        self.blocks.truncate(self.blocks.len().saturating_sub(blocks as usize));
    }

    /// Appends blocks; returns whether the head was the expected one.
    ///
    /// # Errors
    /// They do not continue the head.
    pub(super) fn append(&mut self, transaction: &Transaction) -> Result<bool, String> {
        if transaction.before != self.head() {
            return Ok(false);
        }
        for (height, link) in (transaction.from..).zip(&transaction.links) {
            let head = self.head();
            let expected = head.as_ref().map_or((0, ""), |head| (head.height, head.hash.as_str()));
            let chain = self.blocks.last().map_or(&link.chain_id, |last| &last.chain_id);
            if (height - 1, link.parent.as_str()) != expected || *chain != link.chain_id {
                return Err(format!("block {height} {link:?} was stored after {expected:?}"));
            }
            self.blocks.push(link.clone());
        }
        self.transactions += 1;
        Ok(true)
    }
}
