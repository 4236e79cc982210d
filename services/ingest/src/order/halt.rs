//! What stops the work: the next block does not continue the store, or cannot be stored.

use std::time::Duration;

use super::{
    Order, Reason, StoreWork, failed,
    slot::Slot,
    types::{Halt, Head, Link},
};

impl Order {
    /// Checks whether the next block continues the store. A halt lasts until its block is stored.
    pub(super) fn update_halt(&mut self, now: Duration) {
        let Some(next) = self.next_height() else { return };
        let link = self.slots.get(&next).and_then(Slot::link);
        if let Some((reason, text)) = link.and_then(|link| self.fault(next, link))
            && self.store_work == StoreWork::None
        {
            self.slots.insert(next, failed(next, reason, text, now));
        }
        self.halt = match (self.other_chain(), self.slots.get(&next)) {
            (Some(text), _) => Some(Halt { height: next, reason: Reason::OtherChain, text }),
            (None, Some(Slot::Failed { halt, .. })) => Some(halt.clone()),
            _ => self.halt.take().filter(|halt| halt.height == next && halt.reason != Reason::OtherChain),
        };
    }

    /// What is wrong when the node has another chain than the store.
    pub(super) fn other_chain(&self) -> Option<String> {
        let (node, store) = (&self.node.as_ref()?.chain_id, self.store.as_ref()?.chain_id.as_ref()?);
        (node != store).then(|| format!("the node's chain is {node:?}, the store's is {store:?}"))
    }

    /// Why a block does not continue the store.
    fn fault(&self, height: u64, link: &Link) -> Option<(Reason, String)> {
        let store = self.store.as_ref()?;
        let Link { chain_id, parent, .. } = link;
        if let Some(known) = store.chain_id.as_ref().filter(|known| *known != chain_id) {
            let text = format!("the block's chain is {chain_id:?}, the store's is {known:?}");
            return Some((Reason::OtherChain, text));
        }
        let Head { hash, .. } = store.head.as_ref()?;
        let is_first = parent.is_empty() && self.settings.after_hash.as_ref() == Some(hash);
        if parent == hash || is_first {
            return None;
        }
        let before = height - 1;
        let parent = if parent.is_empty() { "no block" } else { parent };
        Some((Reason::Forked, format!("it follows {parent}, the store's block {before} is {hash}")))
    }
}
