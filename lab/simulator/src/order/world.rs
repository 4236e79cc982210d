//! The events of a simulation in the order of their times.

use std::collections::BTreeMap;

use mesh_ingest::order::{Action, Event, Link, NotDecoded, NotFetched, NotStored, Reason, Ticket};

use super::{
    OrderTotals,
    node::{Node, PERIOD, hash},
    replica::Replica,
    store::{Store, Transaction},
};
use crate::source::Rng;

/// Faults begin before this time.
const FAULTS_END: u64 = 40_000;
/// Everything is stored at this time.
const END: u64 = FAULTS_END + 60_000;
/// After this time without a new block no replica is halted or unready.
const QUIET: u64 = 10_000;
/// Longest time between two faults, and longest fault.
const FAULT_PAUSE: u64 = 1_500;
const FAULT_LENGTH: u64 = 4_000;
const STATUS_PAUSE: u64 = 1_000;
/// Events of a simulation after which it counts as endless.
const MAX_STEPS: u32 = 200_000;

/// Servers that may be unavailable.
const NODE: usize = 0;
const STORE: usize = 1;
const DECODER: usize = 2;

/// What is wrong with a block for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Undecodable,
    Refused,
    Unfit,
    Pruned,
    WithoutResults,
}

/// Something that happens at its time.
enum Due {
    Fault,
    /// To a life of a replica.
    Of(usize, u32, Work),
}

enum Work {
    /// The deadline of its order of work, if it is the newest one.
    WakeUp(u64),
    Status,
    Announcement,
    /// An action is answered by what is then the case.
    Answer(Action),
    /// A block, as it was when the decoder was asked.
    Decode(u64, Ticket, Link),
    Store(Transaction),
    /// An action is answered by what was the case at its beginning.
    Deliver(Event),
}

/// A simulation.
pub(super) struct World {
    rng: Rng,
    now: u64,
    due: BTreeMap<(u64, u64), Due>,
    number: u64,
    replicas: [Replica; 2],
    node: Node,
    store: Store,
    wrong: BTreeMap<u64, (Wrong, u64)>,
    /// Until when the servers are unavailable.
    unavailable: [u64; 3],
    totals: OrderTotals,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let node = Node::new(&mut rng);
        let wrong = (0..rng.below(4)).map(|_| {
            let kinds =
                [Wrong::Undecodable, Wrong::Refused, Wrong::Unfit, Wrong::Pruned, Wrong::WithoutResults];
            let (height, kind) = (1 + rng.below(node.blocks), kinds[rng.below(5) as usize]);
            (height, (kind, rng.below(FAULTS_END)))
        });
        let wrong: BTreeMap<_, _> = wrong.collect();
        let totals = OrderTotals { blocks: node.blocks, wrong: wrong.len() as u64, ..OrderTotals::default() };
        Self {
            rng,
            now: 0,
            due: BTreeMap::new(),
            number: 0,
            replicas: [Replica::new(0, 0), Replica::new(0, 0)],
            node,
            store: Store::default(),
            wrong,
            unavailable: [0; 3],
            totals,
        }
    }

    pub(super) fn run(mut self) -> Result<OrderTotals, String> {
        (0..2).for_each(|replica| self.begin(replica, 0));
        self.schedule(0, Due::Fault);
        let mut quiet_since = None;
        for _ in 0..MAX_STEPS {
            let Some(((at, _), due)) = self.due.pop_first() else {
                return Err("the work has stopped".to_owned());
            };
            self.now = at;
            if self.store.height() == self.node.blocks && self.now > FAULTS_END + FAULT_LENGTH {
                let since = *quiet_since.get_or_insert(self.now);
                if self.now > since + QUIET {
                    return self.finish();
                }
            } else if self.now > END {
                return Err(format!("the store is at {} of {}", self.store.height(), self.node.blocks));
            }
            match due {
                Due::Fault => self.fault()?,
                Due::Of(replica, life, _) if self.replicas[replica].life != life => {}
                Due::Of(replica, life, work) => {
                    let frozen_until = self.replicas[replica].frozen_until;
                    if frozen_until > self.now {
                        self.schedule(frozen_until, Due::Of(replica, life, work));
                    } else {
                        self.work(replica, work)?;
                    }
                }
            }
        }
        Err("no end of steps".to_owned())
    }

    fn finish(mut self) -> Result<OrderTotals, String> {
        let found: Vec<&str> = self.store.blocks.iter().map(|link| &*link.hash).collect();
        let expected: Vec<String> = (1..=self.node.blocks).map(hash).collect();
        if found != expected {
            return Err(format!("{found:?} was stored instead of {expected:?}"));
        }
        for replica in &self.replicas {
            if let Some(halt) = replica.order.halt() {
                return Err(format!("a replica is still {halt}"));
            }
            replica.order.check().map_err(|error| format!("a replica is not ready: {error}"))?;
        }
        self.totals.transactions = self.store.transactions;
        Ok(self.totals)
    }

    fn schedule(&mut self, at: u64, due: Due) {
        self.number += 1;
        self.due.insert((at.max(self.now), self.number), due);
    }

    fn start(&mut self, replica: usize, delay: u64, work: Work) {
        let life = self.replicas[replica].life;
        self.schedule(self.now + delay, Due::Of(replica, life, work));
    }

    /// A replica begins to work after a delay.
    fn begin(&mut self, replica: usize, delay: u64) {
        self.start(replica, delay, Work::WakeUp(0));
        self.start(replica, delay, Work::Status);
        self.start(replica, delay, Work::Announcement);
    }

    fn is_unavailable(&self, server: usize) -> bool {
        self.unavailable[server] > self.now
    }

    fn is_wrong(&self, height: u64, kind: Wrong) -> bool {
        self.wrong.get(&height).is_some_and(|(wrong, until)| *wrong == kind && *until > self.now)
    }

    fn work(&mut self, index: usize, work: Work) -> Result<(), String> {
        let event = match work {
            Work::WakeUp(number) if number != self.replicas[index].wake_up => return Ok(()),
            Work::WakeUp(_) => None,
            Work::Status => {
                self.start(index, STATUS_PAUSE, Work::Status);
                let unavailable = || Event::NodeUnavailable("unavailable".to_owned());
                Some(if self.is_unavailable(NODE) { unavailable() } else { self.node.status(self.now) })
            }
            Work::Announcement => {
                self.start(index, PERIOD - self.now % PERIOD, Work::Announcement);
                self.rng.chance(700).then(|| Event::Announced(self.node.latest(self.now)))
            }
            Work::Answer(action) => Some(self.answer(index, &action)),
            Work::Decode(height, ticket, link) => {
                let event = self.decode(height, ticket);
                if matches!(event, Event::Decoded(..)) {
                    self.replicas[index].decoded(height, ticket, link);
                }
                Some(event)
            }
            Work::Store(transaction) => Some(self.append(index, &transaction)?),
            Work::Deliver(event) => Some(event),
        };
        if let Some(event) = event {
            self.replicas[index].on(event, self.now)?;
        }
        while let Some((action, transaction)) = self.replicas[index].next(self.now)? {
            // Some answers take so long that their question has become another one.
            let delay = if self.rng.chance(50) { self.rng.below(3_000) } else { self.rng.below(30) };
            let work = match transaction {
                Some(transaction) => Work::Store(transaction),
                None if matches!(action, Action::Fetch(..)) && self.rng.chance(500) => {
                    Work::Deliver(self.answer(index, &action))
                }
                None => match action {
                    Action::Decode(height, ticket) => match self.replicas[index].fetched(height) {
                        Some(link) => Work::Decode(height, ticket, link),
                        None => return Err(format!("block {height} is decoded and not there")),
                    },
                    action => Work::Answer(action),
                },
            };
            self.start(index, 1 + delay, work);
        }
        let (wake_up, begins_to_halt) = self.replicas[index].settle(self.now)?;
        self.totals.halts += u64::from(begins_to_halt);
        if let Some(halt) = self.replicas[index].order.halt()
            && halt.reason == Reason::Refused
            && !matches!(self.wrong.get(&halt.height), Some((Wrong::Refused, _)))
        {
            return Err(format!("{halt}, and the store refuses another block"));
        }
        if let Some(at) = wake_up {
            self.replicas[index].wake_up = self.number + 1;
            let life = self.replicas[index].life;
            self.schedule(at, Due::Of(index, life, Work::WakeUp(self.number + 1)));
        }
        Ok(())
    }

    /// The answer to a read of the store, a fetch or a decoding.
    fn answer(&mut self, index: usize, action: &Action) -> Event {
        let text = || "unavailable".to_owned();
        match *action {
            Action::ReadStore if self.is_unavailable(STORE) => Event::StoreUnavailable(text()),
            Action::ReadStore | Action::Store(..) => {
                self.replicas[index].head = self.store.head();
                self.store.read()
            }
            Action::Fetch(height, ticket) => match self.not_fetched(height) {
                Some(error) => Event::NotFetched(height, ticket, error),
                None => Event::Fetched(height, ticket, self.node.link(height, self.now, &mut self.rng)),
            },
            Action::Decode(height, ticket) => self.decode(height, ticket),
        }
    }

    fn decode(&mut self, height: u64, ticket: Ticket) -> Event {
        if self.is_unavailable(DECODER) {
            let error = NotDecoded::Unavailable("unavailable".to_owned());
            return Event::NotDecoded(height, ticket, error);
        }
        if self.is_wrong(height, Wrong::Undecodable) {
            let error = NotDecoded::Never(Reason::Decode, "wrong".to_owned());
            return Event::NotDecoded(height, ticket, error);
        }
        Event::Decoded(height, ticket, self.rng.below(900) as usize)
    }

    fn not_fetched(&mut self, height: u64) -> Option<NotFetched> {
        if self.is_unavailable(NODE) {
            return Some(NotFetched::Unavailable("unavailable".to_owned()));
        }
        if height > self.node.latest(self.now) {
            return Some(NotFetched::TooHigh);
        }
        if self.is_wrong(height, Wrong::Pruned) {
            return Some(NotFetched::Never(Reason::Pruned, "missing".to_owned()));
        }
        let is_without = self.is_wrong(height, Wrong::WithoutResults) || self.rng.chance(100);
        is_without.then_some(NotFetched::NoResultsYet)
    }

    /// Executes a transaction.
    fn append(&mut self, index: usize, transaction: &Transaction) -> Result<Event, String> {
        if self.is_unavailable(STORE) {
            // The outcome of a commit is unknown when its connection is lost.
            self.append_unseen(transaction)?;
            return Ok(Event::NotStored(NotStored::Unavailable("unavailable".to_owned())));
        }
        if self.rng.chance(30) {
            return Ok(Event::NotStored(NotStored::Busy));
        }
        let mut transaction = transaction.clone();
        let unfit = (transaction.from..=transaction.to()).find(|height| self.is_wrong(*height, Wrong::Unfit));
        if let Some(unfit) = unfit {
            // The blocks before it are stored.
            transaction.links.truncate((unfit - transaction.from) as usize);
            if transaction.links.is_empty() {
                return Ok(Event::NotStored(NotStored::Unfit("unfit".to_owned())));
            }
        }
        let is_moved = transaction.before != self.store.head();
        if !is_moved && self.is_refused(&transaction) {
            return Ok(Event::NotStored(NotStored::Refused("wrong".to_owned())));
        }
        if !self.store.append(&transaction)? {
            self.totals.moved += 1;
            return Ok(Event::NotStored(NotStored::Moved));
        }
        self.replicas[index].head = self.store.head();
        Ok(Event::Stored(transaction.to(), std::time::Duration::from_millis(1 + self.rng.below(50))))
    }

    fn is_refused(&self, transaction: &Transaction) -> bool {
        (transaction.from..=transaction.to()).any(|height| self.is_wrong(height, Wrong::Refused))
    }

    /// A transaction whose replica gets no answer may be executed.
    fn append_unseen(&mut self, transaction: &Transaction) -> Result<(), String> {
        let is_whole =
            !(transaction.from..=transaction.to()).any(|height| self.is_wrong(height, Wrong::Unfit));
        if is_whole && !self.is_refused(transaction) && self.rng.chance(500) {
            self.store.append(transaction)?;
        }
        Ok(())
    }

    /// Kills, freezes, disconnects or replaces something.
    fn fault(&mut self) -> Result<(), String> {
        if self.now >= FAULTS_END {
            return Ok(());
        }
        let until = self.now + 1 + self.rng.below(FAULT_LENGTH);
        let index = self.rng.below(2) as usize;
        match self.rng.below(8) {
            0 | 1 => {
                self.totals.kills += 1;
                self.kill(index)?;
                self.begin(index, until - self.now);
            }
            2 => {
                self.totals.freezes += 1;
                self.replicas[index].frozen_until = until;
            }
            3 if self.store.height() > 0 => {
                self.totals.replaced += 1;
                self.node.replace(self.store.height(), until, self.now, &mut self.rng);
            }
            7 if self.store.height() > self.node.kept => {
                self.totals.failovers += 1;
                let lost = 1 + self.rng.below((self.store.height() - self.node.kept).min(10));
                self.store.lose(lost);
            }
            server => {
                self.totals.outages += 1;
                self.unavailable[server as usize % 3] = until;
            }
        }
        let pause = self.rng.below(FAULT_PAUSE);
        self.schedule(self.now + pause, Due::Fault);
        Ok(())
    }

    /// What a replica was storing may still be stored after its death.
    fn kill(&mut self, index: usize) -> Result<(), String> {
        let life = self.replicas[index].life;
        let sent: Vec<Transaction> = self
            .due
            .values()
            .filter_map(|due| match due {
                Due::Of(replica, of, Work::Store(transaction)) if (*replica, *of) == (index, life) => {
                    Some(transaction.clone())
                }
                _ => None,
            })
            .collect();
        sent.iter().try_for_each(|transaction| self.append_unseen(transaction))?;
        self.replicas[index] = Replica::new(life + 1, self.now);
        Ok(())
    }
}
