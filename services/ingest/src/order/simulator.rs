//! The work of two replicas under faults, seed after seed, in simulated time: the store ends with exactly the
//! chain, in order, whatever was killed, frozen or wrong in between.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;

const CHAIN: &str = "net-1";

/// Faults happen before this time; afterwards the work must end.
const FAULTS_END: u64 = 40_000;

/// A minute after the last fault everything is stored.
const END: u64 = FAULTS_END + 60_000;

/// An action that is under way, answered at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    at: u64,
    number: u64,
    replica: usize,
    life: u32,
    action: Option<(u8, u64, u64)>,
}

struct Replica {
    order: Order,
    life: u32,
    born: u64,
    frozen_until: u64,
    /// The head that it knows, as the actor does.
    head: Option<Head>,
}

struct World {
    random: SmallRng,
    now: u64,
    replicas: [Replica; 2],
    running: BinaryHeap<Reverse<Running>>,
    number: u64,
    stored: Vec<u64>,
    blocks: u64,
    /// Heights that are wrong before a time: decoding fails, or the store refuses them.
    wrong: BTreeMap<u64, (bool, u64)>,
    /// A time before which the node, the store, the decoder do not answer.
    away: [u64; 3],
}

fn hash(height: u64) -> String {
    if height == 0 { String::new() } else { format!("h{height}") }
}

fn link(height: u64) -> Link {
    let (hash, parent) = (hash(height), hash(height - 1));
    Link { chain_id: CHAIN.to_owned(), hash, parent, bytes: 1_000 }
}

fn order() -> Order {
    let held_bytes = 30_000;
    Order::new(Settings { fetch_ahead: 4, held_bytes, from: None, after_hash: None })
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let blocks = random.random_range(20..120);
        let wrong = (0..random.random_range(0..3)).map(|_| {
            let until = random.random_range(0..FAULTS_END);
            (random.random_range(1..=blocks), (random.random(), until))
        });
        let wrong = wrong.collect();
        let replica = || Replica { order: order(), life: 0, born: 0, frozen_until: 0, head: None };
        Self {
            random,
            now: 0,
            replicas: [replica(), replica()],
            running: BinaryHeap::new(),
            number: 0,
            stored: Vec::new(),
            blocks,
            wrong,
            away: [0; 3],
        }
    }

    /// The height of the node's newest block.
    fn latest(&self) -> u64 {
        (self.now / 400 + 1).min(self.blocks)
    }

    fn run(&mut self) {
        for replica in 0..2 {
            self.start(replica, 0, None);
        }
        while self.now < END && (self.stored.len() as u64) < self.blocks {
            let Some(Reverse(next)) = self.running.pop() else { panic!("the work has stopped") };
            self.now = next.at.max(self.now);
            let replica = &self.replicas[next.replica];
            if replica.life != next.life {
                continue;
            }
            if replica.frozen_until > self.now {
                self.running.push(Reverse(Running { at: replica.frozen_until, ..next }));
                continue;
            }
            let event = next.action.map(|action| self.answer(next.replica, action));
            self.step(next.replica, event.flatten());
            self.harm();
        }
        let expected: Vec<u64> = (1..=self.blocks).collect();
        assert_eq!(self.stored, expected, "at {} ms", self.now);
    }

    /// Lets an event happen and starts what follows.
    fn step(&mut self, index: usize, event: Option<Event>) {
        let status = match self.is_away(0) {
            true => Event::NodeUnavailable("away".to_owned()),
            false => Event::Node(CHAIN.to_owned(), 1, self.latest()),
        };
        let replica = &mut self.replicas[index];
        let now = Duration::from_millis(self.now - replica.born);
        replica.order.on(status, now);
        if let Some(event) = event {
            replica.order.on(event, now);
        }
        while let Some(action) = self.replicas[index].order.next(now) {
            let action = match action {
                Action::ReadStore => (0, 0, 0),
                Action::Fetch(height, ticket) => (1, height, ticket),
                Action::Decode(height, ticket) => (2, height, ticket),
                Action::Store(from, to) => (3, from, to),
            };
            let delay = self.random.random_range(1..30);
            self.start(index, delay, Some(action));
        }
        let deadline =
            self.replicas[index].order.deadline(now).map_or(200, |due| (due - now).as_millis() as u64);
        self.start(index, deadline.clamp(1, 200), None);
    }

    fn start(&mut self, replica: usize, delay: u64, action: Option<(u8, u64, u64)>) {
        self.number += 1;
        let life = self.replicas[replica].life;
        // Of the wake-ups of a replica only as many are kept as there is work for.
        if action.is_none() && self.running.len() > 200 {
            return;
        }
        self.running.push(Reverse(Running {
            at: self.now + delay,
            number: self.number,
            replica,
            life,
            action,
        }));
    }

    fn is_away(&self, what: usize) -> bool {
        self.away[what] > self.now
    }

    fn answer(&mut self, index: usize, (kind, first, second): (u8, u64, u64)) -> Option<Event> {
        let text = || "away".to_owned();
        let is_wrong = |world: &Self, height: u64, refused: bool| {
            world.wrong.get(&height).is_some_and(|(kind, until)| *kind == refused && *until > world.now)
        };
        Some(match kind {
            0 if self.is_away(1) => Event::StoreUnavailable(text()),
            0 => {
                let height = self.stored.last().copied();
                let head = height.map(|height| Head { height, hash: hash(height) });
                self.replicas[index].head.clone_from(&head);
                Event::Store(height.map(|_| CHAIN.to_owned()), head)
            }
            1 if self.is_away(0) => Event::NotFetched(first, second, NotFetched::Unavailable),
            1 if first > self.latest() => Event::NotFetched(first, second, NotFetched::TooHigh),
            1 if self.random.random_ratio(1, 10) => {
                Event::NotFetched(first, second, NotFetched::NoResultsYet)
            }
            1 => Event::Fetched(first, second, link(first)),
            2 if self.is_away(2) => Event::NotDecoded(first, second, NotDecoded::Unavailable(text())),
            2 if is_wrong(self, first, false) => {
                Event::NotDecoded(first, second, NotDecoded::Never(Reason::Decode, text()))
            }
            2 => Event::Decoded(first, second, self.random.random_range(0..900)),
            _ => {
                self.store(index, first, second, (first..=second).any(|height| is_wrong(self, height, true)))
            }
        })
    }

    fn store(&mut self, index: usize, from: u64, to: u64, is_refused: bool) -> Event {
        let is_away = self.is_away(1);
        let known = self.replicas[index].head.as_ref().map(|head| head.height);
        let follows = known == self.stored.last().copied() && from == known.unwrap_or(0) + 1;
        // A connection that is lost during a commit says nothing of its outcome.
        let is_applied = follows && !is_refused && (!is_away || self.random.random());
        if is_applied {
            self.stored.extend(from..=to);
        }
        if is_away {
            return Event::NotStored(NotStored::Unavailable("away".to_owned()));
        }
        if !follows {
            return Event::NotStored(NotStored::Moved);
        }
        if is_refused {
            return Event::NotStored(NotStored::Refused("no".to_owned()));
        }
        self.replicas[index].head = Some(Head { height: to, hash: hash(to) });
        Event::Stored(to, Duration::from_millis(self.random.random_range(1..50)))
    }

    /// Kills, freezes or disconnects something.
    fn harm(&mut self) {
        if self.now >= FAULTS_END || !self.random.random_ratio(1, 60) {
            return;
        }
        let until = self.now + self.random.random_range(1..4_000);
        let index = self.random.random_range(0..2);
        match self.random.random_range(0..5) {
            0 => {
                let life = self.replicas[index].life + 1;
                // What it was storing may still be applied.
                let running = std::mem::take(&mut self.running).into_iter();
                let (own, others): (Vec<_>, Vec<_>) =
                    running.partition(|Reverse(running)| running.replica == index);
                self.running = others.into();
                for Reverse(Running { action, .. }) in own {
                    if let Some((3, from, to)) = action.filter(|_| self.random.random()) {
                        let is_refused = self.wrong.range(from..=to).next().is_some();
                        self.store(index, from, to, is_refused);
                    }
                }
                self.replicas[index] =
                    Replica { order: order(), life, born: self.now, frozen_until: 0, head: None };
                self.start(index, until - self.now, None);
            }
            1 => self.replicas[index].frozen_until = until,
            2 => self.away[0] = until,
            3 => self.away[1] = until,
            _ => self.away[2] = until,
        }
    }
}

#[test]
fn the_store_ends_with_the_chain_whatever_fails() {
    let seeds = std::env::var("MESH_SIMULATOR_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(1_000) {
        let mut world = World::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        outcome.unwrap_or_else(|error| {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(error)
        });
    }
}
