//! What is around the simulated reader: replicas and the network.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use mesh_problem::{Code, NOT_MAPPED, Problem};

use super::{
    super::{
        position::{MAX_POSITIONS_AHEAD, Totals},
        puller::Event,
        wire::{Chunk, Mark, PullHeader},
    },
    STREAM,
    source::{LONGEST, NOISE, Rng, Source, mix},
};

/// What goes wrong, each so often in a thousand messages or pulls.
#[derive(Default)]
struct Faults {
    drop: u32,
    double: u32,
    delay: u32,
    corrupt: u32,
    forge: u32,
    passing: u32,
    fatal: u32,
    stop_short: u32,
    /// The next pull is said to begin where this one does not end.
    strange: u32,
}

/// How replicas lie about the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    Bytes,
    Rows,
    EndsEarly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    Frozen,
    Dead,
}

struct Replica {
    health: Health,
    since: u64,
    /// What waits for it to thaw.
    kept: Vec<Happening>,
}

/// A message of a replica, on its way to the reader.
#[derive(Clone)]
struct Sent {
    replica: usize,
    /// When the replica sends it, if it still does by then.
    at: u64,
    pull: u32,
    what: What,
}

#[derive(Clone)]
enum What {
    Chunk(String, Bytes),
    Problem(Problem),
}

enum Happening {
    Pull { replica: usize, pull: u32, header: String },
    Message(Sent),
    Turn { replica: usize, health: Health },
}

/// Replicas and network.
pub(super) struct World {
    pub(super) source: Source,
    rng: Rng,
    faults: Faults,
    lie: Lie,
    replicas: Vec<Replica>,
    /// Longest time that a replica takes before its first chunk.
    slowness_us: u64,
    happenings: BTreeMap<(u64, u64), Happening>,
    count: u64,
    arrived: VecDeque<Event>,
    canceled: HashMap<u32, u64>,
    is_calm: bool,
    /// Whether the replicas go away for good.
    never_heals: bool,
    was_fatal: bool,
}

impl World {
    pub(super) fn new(source: Source, is_rows_checked: bool, rng: &mut Rng) -> Self {
        let mut rng = Rng::new(rng.next());
        let is_calm = rng.chance(150);
        let mut faults = Faults { stop_short: 100, ..Faults::default() };
        let mut rate = |often: u32, most: u64| {
            if !is_calm && rng.chance(often) { rng.below(most) as u32 } else { 0 }
        };
        faults.drop = rate(400, 250);
        faults.delay = rate(300, 300);
        faults.corrupt = rate(300, 200);
        faults.forge = rate(300, 300);
        faults.passing = rate(300, 400);
        faults.fatal = rate(40, 60);
        faults.strange = rate(100, 300);
        // Alone, this changes nothing.
        faults.double = if rng.chance(300) { rng.below(300) as u32 } else { 0 };
        let lies = [Lie::Bytes, Lie::EndsEarly, if is_rows_checked { Lie::Rows } else { Lie::Bytes }];
        let lie = if !is_calm && rng.chance(50) { lies[rng.below(3) as usize] } else { Lie::None };
        let replicas = 1 + rng.below(4) as usize;
        let well = || Replica { health: Health::Well, since: 0, kept: Vec::new() };
        let slowness_us = [500, 5_000, 120_000, if is_calm { 500 } else { 900_000 }][rng.below(4) as usize];
        let mut world = Self {
            source,
            faults,
            lie,
            replicas: (0..replicas).map(|_| well()).collect(),
            slowness_us,
            happenings: BTreeMap::new(),
            count: 0,
            arrived: VecDeque::new(),
            canceled: HashMap::new(),
            is_calm,
            never_heals: false,
            was_fatal: false,
            rng,
        };
        if !is_calm && world.rng.chance(500) {
            world.plan_troubles();
        }
        world
    }

    /// Replicas die and freeze, and come back within seconds.
    fn plan_troubles(&mut self) {
        let mut at = 0;
        for _ in 0..self.rng.below(12) {
            let pause_us = if self.rng.chance(500) { 5_000 } else { 2_000_000 };
            at += self.rng.below(pause_us);
            let replica = self.rng.below(self.replicas.len() as u64) as usize;
            let health = if self.rng.chance(500) { Health::Frozen } else { Health::Dead };
            self.later(at, Happening::Turn { replica, health });
            let back = at + self.rng.below(4_000_000);
            self.later(back, Happening::Turn { replica, health: Health::Well });
        }
        self.never_heals = self.rng.chance(80);
        if self.never_heals {
            for replica in 0..self.replicas.len() {
                let health = if self.rng.chance(500) { Health::Frozen } else { Health::Dead };
                // Once more, after the last one that would have come back.
                self.later(at, Happening::Turn { replica, health });
                self.later(at + 4_000_000, Happening::Turn { replica, health });
            }
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.is_calm
    }

    /// Whether every end that is told has wrong totals.
    pub(super) fn lies_about_totals(&self) -> bool {
        matches!(self.lie, Lie::Bytes | Lie::Rows)
    }

    /// Whether there is a reason for the stream to break.
    pub(super) fn excuse(&self) -> bool {
        self.was_fatal || self.never_heals || self.lie != Lie::None
    }

    pub(super) fn next_time(&self) -> Option<u64> {
        self.happenings.keys().next().map(|(at, _)| *at)
    }

    /// The next thing that has reached the reader by now.
    pub(super) fn arrived(&mut self, now: u64) -> Option<Event> {
        while self.arrived.is_empty()
            && let Some(first) = self.happenings.first_entry().filter(|first| first.key().0 <= now)
        {
            let ((at, _), happening) = first.remove_entry();
            self.happens(happening, at);
        }
        self.arrived.pop_front()
    }

    /// A pull leaves the reader.
    pub(super) fn pull(&mut self, pull: u32, header: String, is_again: bool, now: u64) {
        let listening: Vec<usize> = (0..self.replicas.len())
            .filter(|replica| match self.replicas[*replica].health {
                Health::Well => true,
                // Going around a silent replica works most of the time.
                Health::Frozen => !is_again || self.rng.chance(200),
                Health::Dead => false,
            })
            .collect();
        let Some(replica) = listening.get(self.rng.below(listening.len() as u64) as usize) else {
            let nobody = Problem::unavailable("nobody listens");
            let at = now + 300;
            let sent = Sent { replica: usize::MAX, at, pull, what: What::Problem(nobody) };
            self.later(at, Happening::Message(sent));
            return;
        };
        if !self.rng.chance(self.faults.drop) {
            let at = now + 100 + self.rng.below(200);
            self.later(at, Happening::Pull { replica: *replica, pull, header });
        }
    }

    /// The reader does not want the rest of a pull. Replicas hear of it or not.
    pub(super) fn cancel(&mut self, pull: u32, now: u64) {
        if self.rng.chance(500) {
            self.canceled.insert(pull, now + 200);
        }
    }

    fn later(&mut self, at: u64, happening: Happening) {
        self.count += 1;
        self.happenings.insert((at, self.count), happening);
    }

    fn happens(&mut self, happening: Happening, now: u64) {
        match happening {
            Happening::Turn { replica, health } => {
                let changed = &mut self.replicas[replica];
                (changed.health, changed.since) = (health, now);
                for kept in std::mem::take(&mut changed.kept) {
                    // What waited for a dead one is gone with it.
                    if health == Health::Well {
                        self.later(now + 1, kept);
                    }
                }
            }
            Happening::Pull { replica, pull, header } => match self.replicas[replica].health {
                Health::Well => self.answer(replica, pull, &header, now),
                Health::Frozen => {
                    self.replicas[replica].kept.push(Happening::Pull { replica, pull, header });
                }
                Health::Dead => {}
            },
            Happening::Message(sent) => self.message(sent),
        }
    }

    fn message(&mut self, sent: Sent) {
        if self.canceled.get(&sent.pull).is_some_and(|at| *at < sent.at) {
            return;
        }
        if let Some(replica) = self.replicas.get_mut(sent.replica)
            && sent.at >= replica.since
        {
            match replica.health {
                Health::Well => {}
                Health::Frozen => return replica.kept.push(Happening::Message(sent)),
                Health::Dead => return,
            }
        }
        self.arrived.push_back(match sent.what {
            What::Problem(problem) => Event::Failed(sent.pull, problem),
            What::Chunk(header, bytes) => match Chunk::read(&header, bytes) {
                Some(chunk) => Event::Chunk(sent.pull, chunk),
                None => Event::Damaged(sent.pull),
            },
        });
    }

    /// A replica works on a pull.
    fn answer(&mut self, replica: usize, pull: u32, header: &str, now: u64) {
        let mut at = now + self.rng.below(self.slowness_us);
        let problem = if self.rng.chance(self.faults.passing) {
            let codes = [Code::Unavailable, Code::ResourceExhausted, Code::DeadlineExceeded];
            Some(Problem::new(codes[self.rng.below(3) as usize], NOT_MAPPED, "not now"))
        } else if self.rng.chance(self.faults.fatal) {
            self.was_fatal = true;
            Some(Problem::internal(NOT_MAPPED, "the data is gone"))
        } else {
            None
        };
        let ends_after = if problem.is_some() { self.rng.below(3) as u32 } else { u32::MAX };
        let PullHeader { budget, position, .. } = PullHeader::read(header).expect("the reader wrote it");
        let mut from = self.source.offset(&position).expect("checked when it was sent");
        let length = self.source.length;
        let mut ahead = u64::from(budget.bytes);
        if self.rng.chance(self.faults.strange) {
            ahead -= self.rng.below(ahead);
        }
        let known =
            if self.source.is_arithmetic { self.rng.below(MAX_POSITIONS_AHEAD as u64 + 1) } else { 0 };
        let then = (1..=known).map(|pulls| from + ahead * pulls).take_while(|then| *then < length);
        let then: Vec<_> = then.map(|then| self.source.position(then)).collect();
        for index in 0..budget.chunks {
            at += 20 + self.rng.below(200);
            if index >= ends_after {
                break;
            }
            let mut to = from + budget.chunk_bytes() as u64;
            if !self.source.is_arithmetic {
                to -= (mix(from) % 20).min(to - from - 1);
            }
            let is_short = index > 0 && !self.source.is_arithmetic && self.rng.chance(self.faults.stop_short);
            let mark = match () {
                () if self.lie == Lie::EndsEarly && to >= length / 2 => self.end(),
                () if to >= length => self.end(),
                () if is_short => Mark::Stop,
                () => Mark::More,
            };
            to = if mark == Mark::Stop { from } else { to.min(length) };
            let chunk = Chunk {
                stream: STREAM,
                index,
                position: self.source.position(from),
                after: self.source.position(to),
                next_positions: then.clone(),
                mark,
                bytes: self.source.bytes(from, to),
            };
            if self.rng.chance(self.faults.forge) {
                let forged = self.forge(&chunk, budget.chunk_bytes());
                self.send(Sent { replica, at, pull, what: forged });
            }
            self.send(Sent { replica, at, pull, what: What::Chunk(chunk.write(), chunk.bytes) });
            if mark != Mark::More {
                return;
            }
            from = to;
        }
        if let Some(problem) = problem {
            self.send(Sent { replica, at, pull, what: What::Problem(problem) });
        }
    }

    fn end(&self) -> Mark {
        let Source { length: bytes, rows, .. } = self.source;
        Mark::End(match self.lie {
            Lie::Bytes => Totals { bytes: bytes + 1, rows },
            Lie::Rows => Totals { bytes, rows: Some(rows.unwrap_or_default() + 1) },
            Lie::None | Lie::EndsEarly => Totals { bytes, rows },
        })
    }

    /// A message that no honest replica would send here, although its CRC is right.
    fn forge(&mut self, chunk: &Chunk, chunk_bytes: usize) -> What {
        let wrong = |length: usize| NOISE.slice(LONGEST as usize * 2 - length..);
        let elsewhere = self.rng.below(self.source.length + 1);
        let forged = match self.rng.below(6) {
            0 => Chunk { stream: STREAM + 1, bytes: wrong(chunk.bytes.len()), ..chunk.clone() },
            1 => {
                let to = (elsewhere + chunk_bytes as u64).min(self.source.length);
                let (position, after) = (self.source.position(elsewhere), self.source.position(to));
                Chunk { position, after, bytes: self.source.bytes(elsewhere, to), ..chunk.clone() }
            }
            2 => Chunk { index: chunk.index + 1, ..chunk.clone() },
            3 => Chunk { bytes: wrong(chunk_bytes + 1), mark: Mark::More, ..chunk.clone() },
            4 => Chunk {
                bytes: Bytes::new(),
                after: chunk.position.clone(),
                mark: Mark::More,
                ..chunk.clone()
            },
            _ => Chunk { bytes: wrong(5), mark: Mark::Stop, ..chunk.clone() },
        };
        What::Chunk(forged.write(), forged.bytes)
    }

    /// A message meets the network.
    fn send(&mut self, mut sent: Sent) {
        let copies = 1 + u32::from(self.rng.chance(self.faults.double));
        for _ in 0..copies {
            if self.rng.chance(self.faults.drop) {
                continue;
            }
            if self.rng.chance(self.faults.corrupt)
                && let What::Chunk(header, bytes) = &mut sent.what
            {
                (*header, *bytes) = self.corrupt(header, bytes);
            }
            let mut at = sent.at + 100 + self.rng.below(if self.is_calm { 1 } else { 100 });
            if self.rng.chance(self.faults.delay) {
                let delay_us = if self.rng.chance(200) { 2_000_000 } else { 2_000 };
                at += self.rng.below(delay_us);
            }
            self.later(at, Happening::Message(sent.clone()));
        }
    }

    /// Flips a bit.
    fn corrupt(&mut self, header: &str, bytes: &Bytes) -> (String, Bytes) {
        let (mut header, mut bytes) = (header.to_owned().into_bytes(), bytes.to_vec());
        let place = self.rng.below((header.len() + bytes.len()) as u64) as usize;
        let bit = self.rng.below(7);
        match header.get_mut(place) {
            Some(byte) => *byte ^= 1 << bit,
            None => {
                let place = place - header.len();
                bytes[place] ^= 1 << bit;
            }
        }
        (String::from_utf8(header).expect("seven bits are text"), bytes.into())
    }
}
