//! A simulated replica: the order of work, and what the actor around it holds.

use std::{collections::BTreeMap, time::Duration};

use mesh_ingest::order::{Action, Event, Head, Link, Order, Settings};

use super::store::Transaction;

const FETCH_AHEAD: usize = 4;
const HELD_BYTES: usize = 30_000;
/// Longest block.
const MAX_BYTES: usize = 3_500;

/// A replica.
pub(super) struct Replica {
    pub(super) order: Order,
    /// Distinguishes it from its predecessors.
    pub(super) life: u32,
    born: u64,
    pub(super) frozen_until: u64,
    /// The head that it knows.
    pub(super) head: Option<Head>,
    /// The blocks that it holds, and whether they are decoded.
    held: BTreeMap<u64, (Link, bool)>,
    /// The number of its only valid wake-up.
    pub(super) wake_up: u64,
    is_halted: bool,
}

impl Replica {
    pub(super) fn new(life: u32, born: u64) -> Self {
        let settings =
            Settings { fetch_ahead: FETCH_AHEAD, held_bytes: HELD_BYTES, from: None, after_hash: None };
        Self {
            order: Order::new(settings),
            life,
            born,
            frozen_until: 0,
            head: None,
            held: BTreeMap::new(),
            wake_up: 0,
            is_halted: false,
        }
    }

    /// Its own time.
    fn time(&self, now: u64) -> Duration {
        Duration::from_millis(now - self.born)
    }

    /// Handles an event as the actor does.
    pub(super) fn on(&mut self, event: Event, now: u64) {
        match &event {
            Event::Fetched(height, ticket, link) if self.order.expects(*height, *ticket) => {
                self.held.insert(*height, (link.clone(), false));
            }
            Event::Decoded(height, ticket, _) if self.order.expects(*height, *ticket) => {
                if let Some((_, is_decoded)) = self.held.get_mut(height) {
                    *is_decoded = true;
                }
            }
            _ => {}
        }
        self.order.on(event, self.time(now));
    }

    /// The next action, with the transaction if it is one.
    ///
    /// # Errors
    /// The action needs a block that is not there.
    pub(super) fn next(&mut self, now: u64) -> Result<Option<(Action, Option<Transaction>)>, String> {
        let Some(action) = self.order.next(self.time(now)) else { return Ok(None) };
        let held = |height: &u64, wanted| self.held.get(height).filter(|(_, decoded)| *decoded == wanted);
        let transaction = match action {
            Action::Decode(height, _) if held(&height, false).is_none() => {
                return Err(format!("block {height} is to be decoded and is not held"));
            }
            Action::Store(from, to) => {
                let links = (from..=to).map(|height| Some(held(&height, true)?.0.clone()));
                let links = links.collect::<Option<Vec<_>>>();
                let links = links.ok_or_else(|| format!("blocks {from} to {to} are not all decoded"))?;
                Some(Transaction { before: self.head.clone(), from, links })
            }
            _ => None,
        };
        Ok(Some((action, transaction)))
    }

    /// After the last action: forgets what is not needed; returns the time of the next wake-up, and whether a halt
    /// has begun.
    ///
    /// # Errors
    /// It holds too much.
    pub(super) fn settle(&mut self, now: u64) -> Result<(Option<u64>, bool), String> {
        self.held.retain(|height, _| self.order.holds(*height));
        let bytes: usize = self.held.values().map(|(link, _)| link.bytes).sum();
        if bytes > HELD_BYTES + (FETCH_AHEAD + 1) * MAX_BYTES {
            return Err(format!("{bytes} bytes are held"));
        }
        let is_halted = self.order.halt().is_some();
        let begins = is_halted && !std::mem::replace(&mut self.is_halted, is_halted);
        self.is_halted = is_halted;
        let deadline = self.order.deadline(self.time(now));
        Ok((deadline.map(|due| self.born + (due.as_micros().div_ceil(1_000) as u64)), begins))
    }
}
