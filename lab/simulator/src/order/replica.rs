//! A simulated replica: the order of work, and what the actor around it holds.

use std::{collections::BTreeMap, time::Duration};

use mesh_ingest::order::{Action, Event, Head, Link, NotStored, Order, Settings, Ticket};

use super::{node::CHAIN, store::Transaction};

const FETCH_AHEAD: usize = 4;
const HELD_BYTES: usize = 30_000;
/// Longest block.
const MAX_BYTES: usize = 3_500;

pub(super) struct Replica {
    pub(super) order: Order,
    /// Distinguishes it from its predecessors.
    pub(super) life: u32,
    born: u64,
    pub(super) frozen_until: u64,
    pub(super) head: Option<Head>,
    /// The blocks that it holds, and whether they are decoded.
    held: BTreeMap<u64, (Link, bool)>,
    /// The number of its only valid wake-up.
    pub(super) wake_up: u64,
    is_halted: bool,
    /// Whether the node last showed another chain's name.
    is_other_chain: bool,
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
            is_other_chain: false,
        }
    }

    /// Its own time.
    fn time(&self, now: u64) -> Duration {
        Duration::from_millis(now - self.born)
    }

    /// Handles an event as the actor does.
    ///
    /// # Errors
    /// It keeps blocks that follow another block than the stored one.
    pub(super) fn on(&mut self, event: Event, now: u64) -> Result<(), String> {
        let mut has_other_branch = false;
        match &event {
            Event::Node(chain_id, ..) => self.is_other_chain = chain_id != CHAIN,
            Event::NodeUnavailable(_) => self.is_other_chain = false,
            Event::Store(_, Some(head)) => {
                let held = self.held.get(&head.height).filter(|_| self.order.holds(head.height));
                has_other_branch = held.is_some_and(|(link, _)| link.hash != head.hash);
            }
            Event::Fetched(height, ticket, link) if self.order.expects(*height, *ticket) => {
                self.held.insert(*height, (link.clone(), false));
            }
            _ => {}
        }
        let unavailable = matches!(
            event,
            Event::NodeUnavailable(_)
                | Event::StoreUnavailable(_)
                | Event::NotStored(NotStored::Unavailable(_))
        );
        self.order.on(event, self.time(now));
        if unavailable && self.order.check().is_ok() {
            return Err("a replica is ready without a server".to_owned());
        }
        let is_kept = has_other_branch && self.held.keys().any(|height| self.order.holds(*height));
        if is_kept { Err("blocks of another branch than the stored one are kept".to_owned()) } else { Ok(()) }
    }

    /// Takes the decoded form of a block as it was when the decoder was asked.
    pub(super) fn decoded(&mut self, height: u64, ticket: Ticket, link: Link) {
        if self.order.expects(height, ticket) {
            self.held.insert(height, (link, true));
        }
    }

    /// The block that is to be decoded.
    pub(super) fn fetched(&self, height: u64) -> Option<Link> {
        self.held.get(&height).map(|(link, _)| link.clone())
    }

    /// The next action, with the transaction if it is one.
    ///
    /// # Errors
    /// The action needs a block that is not there.
    pub(super) fn next(&mut self, now: u64) -> Result<Option<(Action, Option<Transaction>)>, String> {
        let Some(action) = self.order.next(self.time(now)) else { return Ok(None) };
        let held = |height: &u64, wanted| self.held.get(height).filter(|(_, decoded)| *decoded == wanted);
        let known = self.head.as_ref().map_or(0, |head| head.height);
        let transaction = match action {
            Action::Fetch(height, _) if self.is_other_chain && known > 0 => {
                return Err(format!("block {height} is fetched from a node of another chain"));
            }
            Action::Fetch(height, _) | Action::Decode(height, _) if height <= known => {
                return Err(format!("block {height} is worked on, the store is at {known}"));
            }
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
