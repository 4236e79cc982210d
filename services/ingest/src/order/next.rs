//! What comes out of the state machine: the next action, and when there may be another one.

use std::time::Duration;

use super::{
    HALT_RETRY, IDLE_LOOK_PAUSE, MAX_SLOTS, Order, Reason, StoreWork, Turn,
    slot::Slot,
    types::{Action, Link},
};

impl Order {
    /// The next action, if there is one now.
    pub fn next(&mut self, now: Duration) -> Option<Action> {
        self.next_of_store(now).or_else(|| self.next_of_block(now))
    }

    fn next_of_store(&mut self, now: Duration) -> Option<Action> {
        if self.store_work != StoreWork::None || now < self.store_retry {
            return None;
        }
        if self.store.is_none() || self.look_at().is_some_and(|look_at| look_at <= now) {
            self.store_work = StoreWork::Reading;
            return Some(Action::ReadStore);
        }
        if self.turn != Turn::Own {
            return None;
        }
        let from = self.next_height()?;
        let mut to = None;
        let (mut rows, mut before) = (0, None::<&Link>);
        for (height, slot) in self.slots.range(from..) {
            let Slot::Ready { link, rows: more } = slot else { break };
            let follows =
                before.is_none_or(|before| before.hash == link.parent && before.chain_id == link.chain_id);
            let fits = to.is_none() || rows + more <= self.rows.most() && from > self.one_by_one_to;
            if *height != to.map_or(from, |to: u64| to + 1) || !follows || !fits {
                break;
            }
            (to, rows, before) = (Some(*height), rows + more, Some(link));
        }
        let to = to?;
        self.store_work = StoreWork::Storing(from, to);
        Some(Action::Store(from, to))
    }

    /// Whether the block before the next one, or the chain, is not the one that the store has.
    fn is_halted_by_head(&self) -> bool {
        self.halt.as_ref().is_some_and(|halt| matches!(halt.reason, Reason::Forked | Reason::OtherChain))
    }

    /// When the store is to be read, although its head is known.
    fn look_at(&self) -> Option<Duration> {
        match self.turn {
            Turn::Other { look_at } => Some(look_at),
            Turn::Own if self.slots.is_empty() => Some(self.store_seen + IDLE_LOOK_PAUSE),
            // The store's head or chain may be corrected.
            Turn::Own if self.is_halted_by_head() => Some(self.store_seen + HALT_RETRY),
            Turn::Own => None,
        }
    }

    fn next_of_block(&mut self, now: Duration) -> Option<Action> {
        if self.turn != Turn::Own || self.other_chain().is_some() {
            return None;
        }
        let (next, latest) = (self.next_height()?, self.node.as_ref()?.latest);
        let (most_fetching, most_decoding) = (self.fetches.size(), self.decodings.size());
        let (mut fetching, mut decoding, mut pending, mut held, mut first_due) = (0, 0, 0, 0, None);
        for (height, slot) in &self.slots {
            fetching += usize::from(matches!(slot, Slot::Fetching { .. }));
            decoding += usize::from(matches!(slot, Slot::Decoding { .. }));
            match slot.link() {
                Some(link) => held += link.bytes,
                None => pending += 1,
            }
            if first_due.is_none() && slot.due().is_some_and(|due| due <= now) {
                // The next block is decoded also when later ones use all places.
                let may_decode = decoding < most_decoding || *height == next;
                let is_fetched = matches!(slot, Slot::Fetched { .. });
                let is_free = if is_fetched { may_decode } else { fetching < most_fetching };
                first_due = is_free.then_some(*height);
            }
        }
        if let Some(height) = first_due
            && let Some(action) =
                self.start(height, fetching < most_fetching, decoding < most_decoding || height == next)
        {
            return Some(action);
        }
        // The next block is fetched even when nothing else fits. Blocks that wait for another attempt count as held.
        let height = self.slots.last_key_value().map_or(next, |(height, _)| height + 1).max(next);
        let has_room = held + (pending + 1) * self.usual_bytes <= self.settings.held_bytes
            && self.slots.len() < MAX_SLOTS;
        let waits = !has_room || self.halt.is_some();
        if height > latest || pending >= most_fetching || waits && height != next {
            return None;
        }
        self.slots.insert(height, Slot::Wanted { at: now, without_results_since: None });
        self.start(height, true, true)
    }

    /// Starts the next action on a block.
    fn start(&mut self, height: u64, may_fetch: bool, may_decode: bool) -> Option<Action> {
        let ticket = self.next_ticket;
        let slot = self.slots.get_mut(&height)?;
        let action = match slot {
            Slot::Fetched { link, .. } if may_decode => {
                *slot = Slot::Decoding { ticket, link: link.clone() };
                Action::Decode(height, ticket)
            }
            Slot::Wanted { without_results_since, .. } if may_fetch => {
                *slot = Slot::Fetching { ticket, without_results_since: *without_results_since };
                Action::Fetch(height, ticket)
            }
            Slot::Failed { .. } if may_fetch => {
                *slot = Slot::Fetching { ticket, without_results_since: None };
                // The blocks above it are those of the other chain, or come from the decoder that is corrected now.
                self.slots.split_off(&(height + 1));
                Action::Fetch(height, ticket)
            }
            _ => return None,
        };
        self.next_ticket += 1;
        Some(action)
    }

    /// When there may be an action that there is not `now`, without another event.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let of_store = (self.store_work == StoreWork::None).then_some(match self.look_at() {
            Some(look_at) if self.store.is_some() => look_at.max(self.store_retry),
            _ => self.store_retry,
        });
        let of_blocks = self.slots.values().filter_map(Slot::due);
        of_store.into_iter().chain(of_blocks).filter(|due| *due > now).min()
    }
}
