//! The order of the work as a state machine without I/O: events go in by [`Order::on`], actions come out of
//! [`Order::next`]. It has no clock: times are arguments, counted from its beginning.
//!
//! The newest stored block is the only cursor. A replica that did not store the last block is a standby: it
//! takes over when the store has no new block for [`PATIENCE`] although the node has more. Two replicas that store
//! at the same time do no harm, because the store refuses blocks that do not continue its head.

mod halt;
mod next;
mod slot;
#[cfg(test)]
mod tests;
mod types;
mod window;

use std::{collections::BTreeMap, time::Duration};

pub use mesh_bus::HaltReason as Reason;
use mesh_store::append::TransactionRows;

pub use self::types::{Action, Event, Halt, Head, Link, NotDecoded, NotFetched, NotStored, Settings, Ticket};
use self::{slot::Slot, window::Window};

/// How long the store has no new block before a standby takes over.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Pause between two reads of the store by a standby that is not behind.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Pause after which the replica that stores reads the store while there is nothing to store: a failover may have lost
/// its newest blocks.
const IDLE_LOOK_PAUSE: Duration = Duration::from_secs(10);

/// Pause before a step that halts the work is tried again.
const HALT_RETRY: Duration = Duration::from_secs(5);

/// Pause before results that are not there yet are requested again.
const RESULTS_RETRY: Duration = Duration::from_millis(50);

/// A node without results of a block below its newest one for this long keeps none.
const RESULTS_PATIENCE: Duration = Duration::from_secs(5);

/// Pause before a server that did not answer is tried again.
const SERVER_RETRY: Duration = Duration::from_millis(500);

/// Pause before the store is tried again after another session held its head.
const BUSY_RETRY: Duration = Duration::from_millis(50);

/// Most blocks that are worked on.
const MAX_SLOTS: usize = 1_024;

/// The node, as it was last seen.
#[derive(Debug)]
struct Node {
    chain_id: String,
    earliest: u64,
    latest: u64,
}

/// The store, as it was last seen.
#[derive(Debug, PartialEq, Eq)]
struct Store {
    chain_id: Option<String>,
    head: Option<Head>,
}

/// Whose turn it is to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// This replica's.
    Own,
    /// Another's; the store is read at this time.
    Other { look_at: Duration },
}

/// What is being done with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreWork {
    None,
    Reading,
    /// Blocks of these heights are being stored.
    Storing(u64, u64),
}

/// The state machine of one replica.
#[derive(Debug)]
pub struct Order {
    settings: Settings,
    store: Option<Store>,
    store_work: StoreWork,
    /// Before this time nothing is done with the store.
    store_retry: Duration,
    /// When the store was last read or written.
    store_seen: Duration,
    node: Option<Node>,
    turn: Turn,
    slots: BTreeMap<u64, Slot>,
    next_ticket: Ticket,
    /// The last block of a refused transaction of several: up to it they are stored one by one, so that the block that is
    /// refused is found.
    one_by_one_to: u64,
    /// Most rows of the next transaction.
    rows: TransactionRows,
    /// The greatest block of late, bytes.
    usual_bytes: usize,
    /// Most blocks that are fetched, and that are decoded, at the same time, as what answers them can bear it.
    fetches: Window,
    decodings: Window,
    halt: Option<Halt>,
    /// The lowest block that a status named and that no node had, and since when.
    absent: Option<(u64, Duration)>,
    errors: Errors,
}

/// The last errors of what the work needs, until it succeeds again.
#[derive(Debug, Default)]
struct Errors {
    store: Option<String>,
    node: Option<String>,
    /// Of the node's blocks.
    blocks: Option<String>,
    decoder: Option<String>,
}

impl Order {
    /// The state of a replica at its start.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            store: None,
            store_work: StoreWork::None,
            store_retry: Duration::ZERO,
            store_seen: Duration::ZERO,
            node: None,
            turn: Turn::Other { look_at: Duration::ZERO },
            slots: BTreeMap::new(),
            next_ticket: 0,
            one_by_one_to: 0,
            rows: TransactionRows::FEWEST,
            usual_bytes: 0,
            fetches: Window::ONE,
            decodings: Window::ONE,
            halt: None,
            absent: None,
            errors: Errors::default(),
        }
    }

    /// The halt, if nothing is written until a cause is corrected.
    pub fn halt(&self) -> Option<&Halt> {
        self.halt.as_ref()
    }

    /// The heights of the newest stored block (0 without one) and of the node's newest block.
    pub fn heights(&self) -> (Option<u64>, Option<u64>) {
        let store = self.store.as_ref().map(Store::height);
        (store, self.node.as_ref().map(|node| node.latest))
    }

    /// Whether a block's content is still needed.
    pub fn holds(&self, height: u64) -> bool {
        self.slots.get(&height).is_some_and(|slot| slot.link().is_some())
    }

    /// Whether an action on a block is still needed.
    pub fn expects(&self, height: u64, wanted: Ticket) -> bool {
        match self.slots.get(&height) {
            Some(Slot::Fetching { ticket, .. } | Slot::Decoding { ticket, .. }) => *ticket == wanted,
            _ => false,
        }
    }

    /// Whether blocks are stored as they come.
    ///
    /// # Errors
    /// The halt, or what is waited for; both, when its block cannot be tried again.
    pub fn check(&self) -> Result<(), String> {
        match (&self.halt, self.waits_for()) {
            (Some(halt), Err(now)) => Err(format!("{halt}; tried again: {now}")),
            (Some(halt), Ok(())) => Err(halt.to_string()),
            (None, waits) => waits,
        }
    }

    /// Whether nothing is missing for the next block.
    ///
    /// # Errors
    /// What is waited for.
    pub fn waits_for(&self) -> Result<(), String> {
        let errors = &self.errors;
        let why = |error: &Option<String>| error.clone().unwrap_or_else(|| "not reached so far".to_owned());
        let Some(store) = &self.store else {
            return Err(format!("the database is unavailable: {}", why(&errors.store)));
        };
        let Some(node) = &self.node else {
            return Err(format!("the consensus node is unavailable: {}", why(&errors.node)));
        };
        if store.height() > node.latest {
            let (latest, height) = (node.latest, store.height());
            return Err(format!("the consensus node is at block {latest}, the store at {height}"));
        }
        let next = self.next_height().and_then(|next| self.slots.get(&next));
        let error = match next.filter(|_| self.turn == Turn::Own) {
            Some(Slot::Wanted { .. } | Slot::Fetching { .. }) => &errors.blocks,
            Some(Slot::Fetched { .. } | Slot::Decoding { .. }) => &errors.decoder,
            // A standby does not know whether there are blocks or a decoder again.
            _ => &None,
        };
        error.clone().map_or(Ok(()), Err)
    }

    /// Handles an event.
    pub fn on(&mut self, event: Event, now: Duration) {
        match event {
            Event::Store(chain_id, head) => self.on_store(Store { chain_id, head }, now),
            Event::StoreUnavailable(error) => self.lose_store(error, now),
            Event::Node(chain_id, earliest, latest) => {
                self.errors.node = None;
                self.absent = self.absent.filter(|(height, _)| *height <= latest);
                let before = self.node.replace(Node { chain_id, earliest, latest });
                self.watch_for_standstill(before.map_or(0, |node| node.latest), now);
            }
            Event::NodeUnavailable(error) => {
                self.errors.node = Some(error);
                self.node = None;
            }
            Event::Announced(height) => {
                let Some(node) = &mut self.node else { return };
                let before = node.latest;
                node.latest = before.max(height);
                self.watch_for_standstill(before, now);
            }
            Event::Fetched(height, ticket, link) if self.expects(height, ticket) => {
                self.errors.blocks = None;
                self.absent = self.absent.filter(|(absent, _)| *absent != height);
                self.usual_bytes = link.bytes.max(self.usual_bytes / 2);
                self.fetches.widen(self.settings.fetch_ahead);
                self.slots.insert(height, Slot::Fetched { link, at: now });
            }
            Event::NotFetched(height, ticket, error) if self.expects(height, ticket) => {
                self.on_not_fetched(height, error, now);
            }
            Event::Decoded(height, ticket, rows) if self.expects(height, ticket) => {
                self.errors.decoder = None;
                self.decodings.widen(self.settings.fetch_ahead);
                if let Some(link) = self.slots.remove(&height).as_ref().and_then(Slot::link) {
                    self.slots.insert(height, Slot::Ready { link: link.clone(), rows });
                }
            }
            Event::NotDecoded(height, ticket, error) if self.expects(height, ticket) => {
                self.on_not_decoded(height, error, now);
            }
            Event::Stored(height, time) => self.on_stored(height, time, now),
            Event::NotStored(error) => self.on_not_stored(error, now),
            // Of actions whose results are not needed any more.
            Event::Fetched(..) | Event::NotFetched(..) | Event::Decoded(..) | Event::NotDecoded(..) => {}
        }
        self.drop_blocks_after_a_gap();
        self.update_halt(now);
    }

    /// Forgets blocks that do not begin at the next height: the store has lost its newest blocks, or the node has older
    /// ones than before. Blocks are fetched above the last one that is held, so that a gap would
    /// stay.
    fn drop_blocks_after_a_gap(&mut self) {
        let Some(next) = self.next_height() else { return };
        if self.slots.first_key_value().is_some_and(|(first, _)| *first < next) {
            self.slots = self.slots.split_off(&next);
        }
        if self.slots.first_key_value().is_some_and(|(first, _)| *first > next) {
            self.slots.clear();
        }
    }

    /// A standby reads the store a moment after the node has a new block.
    fn watch_for_standstill(&mut self, before: u64, now: Duration) {
        let height = self.store.as_ref().map_or(0, Store::height);
        let latest = self.node.as_ref().map_or(0, |node| node.latest);
        if let Turn::Other { look_at } = &mut self.turn
            && before <= height
            && height < latest
        {
            *look_at = now + PATIENCE;
        }
    }

    fn on_store(&mut self, store: Store, now: Duration) {
        self.store_work = StoreWork::None;
        self.store_seen = now;
        self.errors.store = None;
        let stands_still = self.store.as_ref() == Some(&store);
        let is_behind = self.node.as_ref().is_some_and(|node| node.latest > store.height());
        // When the stored block is not the one that was fetched, those above it do not follow it either.
        let same = store.head.as_ref().is_some_and(|head| {
            let link = self.slots.get(&head.height).and_then(Slot::link);
            link.is_none_or(|link| link.hash == head.hash)
        });
        self.slots = if same { self.slots.split_off(&(store.height() + 1)) } else { BTreeMap::new() };
        self.store = Some(store);
        match &mut self.turn {
            Turn::Own => {}
            turn if stands_still && is_behind => *turn = Turn::Own,
            Turn::Other { look_at } => *look_at = now + if is_behind { PATIENCE } else { LOOK_PAUSE },
        }
    }

    fn lose_store(&mut self, error: String, now: Duration) {
        self.store_work = StoreWork::None;
        self.errors.store = Some(error);
        self.store = None;
        self.store_retry = now + SERVER_RETRY;
    }

    fn on_not_fetched(&mut self, height: u64, error: NotFetched, now: Duration) {
        let slot = match error {
            NotFetched::TooHigh if self.is_withheld(height, now) => {
                let latest = self.node.as_ref().map_or(0, |node| node.latest);
                self.errors.blocks =
                    Some(format!("the node says that it is at block {latest}, and has no block {height}"));
                Slot::Wanted { at: now + SERVER_RETRY, without_results_since: None }
            }
            NotFetched::TooHigh => {
                let known = self.absent.filter(|(absent, _)| *absent <= height);
                self.absent = Some(known.unwrap_or((height, now)));
                // A false announcement, or another node's; the next status says how far this one is. Blocks above it
                // came from a node that has more; without this one they would wait without an end.
                self.slots.split_off(&height);
                if let Some(node) = &mut self.node {
                    node.latest = node.latest.min(height.saturating_sub(1));
                }
                return;
            }
            NotFetched::Unavailable(error) => {
                self.errors.blocks = Some(error);
                self.fetches.halve();
                Slot::Wanted { at: now + SERVER_RETRY, without_results_since: None }
            }
            NotFetched::NoResultsYet => {
                let since = match self.slots.get(&height) {
                    Some(Slot::Fetching { without_results_since: Some(since), .. }) => *since,
                    _ => now,
                };
                let has_later = self.node.as_ref().is_some_and(|node| node.latest > height);
                if has_later && now >= since + RESULTS_PATIENCE {
                    let text = "the node has the block without its results".to_owned();
                    failed(height, Reason::NoResults, text, now)
                } else {
                    Slot::Wanted { at: now + RESULTS_RETRY, without_results_since: Some(since) }
                }
            }
            NotFetched::Never(reason, text) => {
                self.errors.blocks = None;
                failed(height, reason, text, now)
            }
        };
        self.slots.insert(height, slot);
    }

    /// Whether statuses have named a block for long that no node has, as after a state sync.
    fn is_withheld(&self, height: u64, now: Duration) -> bool {
        self.absent.is_some_and(|(absent, since)| absent == height && now >= since + RESULTS_PATIENCE)
    }

    fn on_not_decoded(&mut self, height: u64, error: NotDecoded, now: Duration) {
        // Another replica may reply at once.
        let pause = if matches!(error, NotDecoded::Late(_)) { Duration::ZERO } else { SERVER_RETRY };
        let slot = match error {
            NotDecoded::Never(reason, text) => {
                self.errors.decoder = None;
                failed(height, reason, text, now)
            }
            NotDecoded::Unavailable(text) | NotDecoded::Late(text) => {
                self.errors.decoder = Some(text);
                self.decodings.halve();
                let Some(link) = self.slots.get(&height).and_then(Slot::link) else { return };
                Slot::Fetched { link: link.clone(), at: now + pause }
            }
        };
        self.slots.insert(height, slot);
    }

    fn on_stored(&mut self, height: u64, time: Duration, now: Duration) {
        let link = self.slots.get(&height).and_then(Slot::link).cloned();
        let (StoreWork::Storing(from, _), Some(link), Some(store)) =
            (self.store_work, link, self.store.as_mut())
        else {
            return self.lose_store("not reached so far".to_owned(), now);
        };
        self.store_work = StoreWork::None;
        self.store_seen = now;
        store.head = Some(Head { height, hash: link.hash });
        store.chain_id = Some(link.chain_id);
        let rows: usize = self.slots.range(from..=height).map(|(_, slot)| slot.rows()).sum();
        self.rows.took(rows, time);
        self.slots = self.slots.split_off(&(height + 1));
        self.turn = Turn::Own;
    }

    fn on_not_stored(&mut self, error: NotStored, now: Duration) {
        let work = std::mem::replace(&mut self.store_work, StoreWork::None);
        let StoreWork::Storing(from, to) = work else { return };
        match error {
            NotStored::Moved => self.turn = Turn::Other { look_at: now },
            NotStored::Busy => self.store_retry = now + BUSY_RETRY,
            NotStored::Unavailable(error) => {
                self.rows.halve();
                self.lose_store(error, now);
            }
            NotStored::Unfit(text) => {
                self.slots.insert(from, failed(from, Reason::Decode, text, now));
            }
            NotStored::Refused(_) if from < to => self.one_by_one_to = to,
            NotStored::Refused(text) => {
                self.one_by_one_to = 0;
                self.slots.insert(from, failed(from, Reason::Refused, text, now));
            }
        }
    }

    /// The next height to store.
    fn next_height(&self) -> Option<u64> {
        let store = self.store.as_ref()?;
        match &store.head {
            Some(head) => Some(head.height + 1),
            None => Some(self.settings.from.unwrap_or(self.node.as_ref()?.earliest)),
        }
    }
}

impl Store {
    /// The height of the newest block; 0 without one.
    fn height(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.height)
    }
}

fn failed(height: u64, reason: Reason, text: String, now: Duration) -> Slot {
    Slot::Failed { halt: Halt { height, reason, text }, until: now + HALT_RETRY }
}
