//! The environment of the simulated reader: the health of replicas, and the network with its faults.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use mesh_bus::stream::{puller::Event, wire::Chunk};
use mesh_problem::Problem;

use crate::{
    faults::{Fault, Lie, PerFault},
    source::{Rng, Source},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    Frozen,
    Dead,
}

struct Replica {
    health: Health,
    since: u64,
    /// Messages that are sent when it thaws.
    pending: Vec<SimEvent>,
}

/// A message in transit from a replica to the reader.
#[derive(Clone)]
pub(crate) struct InTransit {
    pub(crate) replica: usize,
    /// When the replica sends it, unless it is dead by then.
    pub(crate) at: u64,
    pub(crate) pull: u32,
    pub(crate) content: Content,
}

/// The content of a message.
#[derive(Clone)]
pub(crate) enum Content {
    Chunk(String, Bytes),
    Problem(Problem),
}

enum SimEvent {
    Pull { replica: usize, pull: u32, header: String },
    Message(InTransit),
    HealthChange { replica: usize, health: Health },
}

/// Replicas and network.
pub(crate) struct World {
    pub(crate) source: Source,
    pub(crate) rng: Rng,
    /// Probabilities of the faults, per thousand messages or pulls.
    rates: PerFault,
    /// The faults that occurred so far.
    pub(crate) counts: PerFault,
    pub(crate) lie: Lie,
    replicas: Vec<Replica>,
    /// Maximum time of a replica before its first chunk, µs.
    pub(crate) slowness_us: u64,
    events: BTreeMap<(u64, u64), SimEvent>,
    count: u64,
    arrived: VecDeque<Event>,
    canceled: HashMap<u32, u64>,
    is_calm: bool,
    /// Whether the replicas disappear for good.
    never_heals: bool,
}

impl World {
    pub(crate) fn new(source: Source, is_rows_checked: bool, rng: &mut Rng) -> Self {
        let mut rng = Rng::new(rng.next());
        let is_calm = rng.chance(150);
        let rates = PerFault::draw(&mut rng, is_calm);
        let lies = [Lie::Bytes, Lie::EndsEarly, if is_rows_checked { Lie::Rows } else { Lie::Bytes }];
        let lie = if !is_calm && rng.chance(50) { lies[rng.below(3) as usize] } else { Lie::None };
        let replicas = 1 + rng.below(4) as usize;
        let well = || Replica { health: Health::Well, since: 0, pending: Vec::new() };
        let slowness_us = [500, 5_000, 120_000, if is_calm { 500 } else { 900_000 }][rng.below(4) as usize];
        let mut world = Self {
            source,
            rates,
            counts: PerFault::default(),
            lie,
            replicas: (0..replicas).map(|_| well()).collect(),
            slowness_us,
            events: BTreeMap::new(),
            count: 0,
            arrived: VecDeque::new(),
            canceled: HashMap::new(),
            is_calm,
            never_heals: false,
            rng,
        };
        if !is_calm && world.rng.chance(500) {
            world.plan_troubles();
        }
        world
    }

    /// Schedules deaths and freezes of replicas, each with a recovery within seconds.
    fn plan_troubles(&mut self) {
        let mut at = 0;
        for _ in 0..self.rng.below(12) {
            let pause_us = if self.rng.chance(500) { 5_000 } else { 2_000_000 };
            at += self.rng.below(pause_us);
            let replica = self.rng.below(self.replicas.len() as u64) as usize;
            let health = if self.rng.chance(500) { Health::Frozen } else { Health::Dead };
            self.later(at, SimEvent::HealthChange { replica, health });
            let back = at + self.rng.below(4_000_000);
            self.later(back, SimEvent::HealthChange { replica, health: Health::Well });
        }
        self.never_heals = self.rng.chance(80);
        if self.never_heals {
            for replica in 0..self.replicas.len() {
                let health = if self.rng.chance(500) { Health::Frozen } else { Health::Dead };
                // After the last scheduled recovery, so that the replica stays dead.
                self.later(at, SimEvent::HealthChange { replica, health });
                self.later(at + 4_000_000, SimEvent::HealthChange { replica, health });
            }
        }
    }

    /// Draws whether a fault occurs, without counting it.
    pub(crate) fn draw(&mut self, fault: Fault) -> bool {
        self.rng.chance(self.rates[fault])
    }

    /// Draws whether a fault occurs, and counts it.
    pub(crate) fn occurs(&mut self, fault: Fault) -> bool {
        let occurs = self.draw(fault);
        self.counts[fault] += u32::from(occurs);
        occurs
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// Whether every reported end has wrong totals.
    pub(crate) fn lies_about_totals(&self) -> bool {
        matches!(self.lie, Lie::Bytes | Lie::Rows)
    }

    /// Whether a fault justifies that the stream breaks.
    pub(crate) fn may_break(&self) -> bool {
        self.counts[Fault::Fatal] > 0 || self.never_heals || self.lie != Lie::None
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        self.events.keys().next().map(|(at, _)| *at)
    }

    /// The next event that has reached the reader by `now`.
    pub(crate) fn arrived(&mut self, now: u64) -> Option<Event> {
        while self.arrived.is_empty()
            && let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= now)
        {
            let ((at, _), event) = first.remove_entry();
            self.apply(event, at);
        }
        self.arrived.pop_front()
    }

    /// Sends a pull of the reader.
    pub(crate) fn pull(&mut self, pull: u32, header: String, is_again: bool, now: u64) {
        let listening: Vec<usize> = (0..self.replicas.len())
            .filter(|replica| match self.replicas[*replica].health {
                Health::Well => true,
                // A repeated pull goes to another replica most of the time.
                Health::Frozen => !is_again || self.rng.chance(200),
                Health::Dead => false,
            })
            .collect();
        let Some(replica) = listening.get(self.rng.below(listening.len() as u64) as usize) else {
            let no_listener = Problem::unavailable("no replica listens");
            let at = now + 300;
            let sent = InTransit { replica: usize::MAX, at, pull, content: Content::Problem(no_listener) };
            self.later(at, SimEvent::Message(sent));
            return;
        };
        if !self.occurs(Fault::Drop) {
            let at = now + 100 + self.rng.below(200);
            self.later(at, SimEvent::Pull { replica: *replica, pull, header });
        }
    }

    /// Cancels the rest of a pull. Each replica may miss the cancellation.
    pub(crate) fn cancel(&mut self, pull: u32, now: u64) {
        if self.rng.chance(500) {
            self.canceled.insert(pull, now + 200);
        }
    }

    fn later(&mut self, at: u64, event: SimEvent) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn apply(&mut self, event: SimEvent, now: u64) {
        match event {
            SimEvent::HealthChange { replica, health } => {
                let changed = &mut self.replicas[replica];
                (changed.health, changed.since) = (health, now);
                match health {
                    Health::Well => {}
                    Health::Frozen => self.counts[Fault::Freeze] += 1,
                    Health::Dead => self.counts[Fault::Die] += 1,
                }
                for pending in std::mem::take(&mut changed.pending) {
                    // Messages that waited for a dead replica are lost with it.
                    if health == Health::Well {
                        self.later(now + 1, pending);
                    }
                }
            }
            SimEvent::Pull { replica, pull, header } => match self.replicas[replica].health {
                Health::Well => self.answer(replica, pull, &header, now),
                Health::Frozen => {
                    self.replicas[replica].pending.push(SimEvent::Pull { replica, pull, header });
                }
                Health::Dead => {}
            },
            SimEvent::Message(sent) => self.message(sent),
        }
    }

    fn message(&mut self, sent: InTransit) {
        if self.canceled.get(&sent.pull).is_some_and(|at| *at < sent.at) {
            return;
        }
        if let Some(replica) = self.replicas.get_mut(sent.replica)
            && sent.at >= replica.since
        {
            match replica.health {
                Health::Well => {}
                Health::Frozen => return replica.pending.push(SimEvent::Message(sent)),
                Health::Dead => return,
            }
        }
        self.arrived.push_back(match sent.content {
            Content::Problem(problem) => Event::Failed(sent.pull, problem),
            Content::Chunk(header, bytes) => match Chunk::read(&header, bytes) {
                Some(chunk) => Event::Chunk(sent.pull, chunk),
                None => Event::Damaged(sent.pull),
            },
        });
    }

    /// Applies the network's faults to a message.
    pub(crate) fn send(&mut self, mut sent: InTransit) {
        let copies = 1 + u32::from(self.occurs(Fault::Duplicate));
        for _ in 0..copies {
            if self.occurs(Fault::Drop) {
                continue;
            }
            if self.draw(Fault::Corrupt)
                && let Content::Chunk(header, bytes) = &mut sent.content
            {
                (*header, *bytes) = self.corrupt(header, bytes);
                self.counts[Fault::Corrupt] += 1;
            }
            let mut at = sent.at + 100 + self.rng.below(if self.is_calm { 1 } else { 100 });
            if self.occurs(Fault::Delay) {
                let delay_us = if self.rng.chance(200) { 2_000_000 } else { 2_000 };
                at += self.rng.below(delay_us);
            }
            self.later(at, SimEvent::Message(sent.clone()));
        }
    }

    /// Flips a bit.
    fn corrupt(&mut self, header: &str, bytes: &Bytes) -> (String, Bytes) {
        let (mut header, mut bytes) = (header.to_owned().into_bytes(), bytes.to_vec());
        let position = self.rng.below((header.len() + bytes.len()) as u64) as usize;
        let bit = self.rng.below(7);
        match header.get_mut(position) {
            Some(byte) => *byte ^= 1 << bit,
            None => {
                let position = position - header.len();
                bytes[position] ^= 1 << bit;
            }
        }
        (String::from_utf8(header).expect("seven bits are text"), bytes.into())
    }
}
