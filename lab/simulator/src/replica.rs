//! How simulated replicas answer a pull, correctly or with forged messages.

use bytes::Bytes;
use mesh_bus::{
    MAX_POSITIONS_AHEAD, Position, PullBudget, Totals,
    stream::wire::{Chunk, Mark, PullHeader},
};
use mesh_problem::{Code, NOT_MAPPED, Problem};

use crate::{
    faults::{Fault, Lie},
    source::{LONGEST, NOISE, STREAM, Source, mix},
    world::{Content, InTransit, World},
};

impl World {
    /// Schedules a replica's messages for a pull.
    pub(crate) fn answer(&mut self, replica: usize, pull: u32, header: &str, now: u64) {
        let mut at = now + self.rng.below(self.slowness_us);
        let problem = self.problem();
        let ends_after = if problem.is_some() { self.rng.below(3) as u32 } else { u32::MAX };
        let PullHeader { budget, position, .. } = PullHeader::read(header).expect("the reader wrote it");
        let mut from = self.source.offset(&position).expect("checked when it was sent");
        let length = self.source.length;
        let then = self.next_positions(from, budget);
        for index in 0..budget.chunks {
            at += 20 + self.rng.below(200);
            if index >= ends_after {
                break;
            }
            let mut to = from + budget.chunk_bytes() as u64;
            if !self.source.is_arithmetic {
                to -= (mix(from) % 20).min(to - from - 1);
            }
            let is_short = index > 0 && !self.source.is_arithmetic && self.draw(Fault::StopShort);
            let ends_early = self.lie == Lie::EndsEarly && to >= length / 2;
            let mark = match () {
                () if ends_early || to >= length => self.end(),
                () if is_short => Mark::Stop,
                () => Mark::More,
            };
            self.counts[Fault::StopShort] += u32::from(mark == Mark::Stop);
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
            if self.occurs(Fault::Forge) {
                let forged = self.forge(&chunk, budget.chunk_bytes());
                self.send(InTransit { replica, at, pull, content: forged });
            }
            self.send(InTransit { replica, at, pull, content: Content::Chunk(chunk.write(), chunk.bytes) });
            if mark != Mark::More {
                return;
            }
            from = to;
        }
        if let Some(problem) = problem {
            self.send(InTransit { replica, at, pull, content: Content::Problem(problem) });
        }
    }

    /// The problem with which a pull ends, if any.
    fn problem(&mut self) -> Option<Problem> {
        if self.occurs(Fault::Transient) {
            let codes = [Code::Unavailable, Code::ResourceExhausted, Code::DeadlineExceeded];
            return Some(Problem::new(codes[self.rng.below(3) as usize], NOT_MAPPED, "not now"));
        }
        if self.occurs(Fault::Fatal) {
            return Some(Problem::internal(NOT_MAPPED, "the data is gone"));
        }
        None
    }

    /// The start positions of the next pulls, as reported by this pull's chunks.
    fn next_positions(&mut self, from: u64, budget: PullBudget) -> Vec<Position> {
        let mut ahead = u64::from(budget.bytes);
        if self.occurs(Fault::WrongNext) {
            ahead -= self.rng.below(ahead);
        }
        let is_arithmetic = self.source.is_arithmetic;
        let known = if is_arithmetic { self.rng.below(MAX_POSITIONS_AHEAD as u64 + 1) } else { 0 };
        let next = (1..=known).map(|pulls| from + ahead * pulls);
        next.take_while(|next| *next < self.source.length).map(|next| self.source.position(next)).collect()
    }

    fn end(&mut self) -> Mark {
        self.counts[Fault::Lie] += u32::from(self.lie != Lie::None);
        let Source { length: bytes, rows, .. } = self.source;
        Mark::End(match self.lie {
            Lie::Bytes => Totals { bytes: bytes + 1, rows },
            Lie::Rows => Totals { bytes, rows: Some(rows.unwrap_or_default() + 1) },
            Lie::None | Lie::EndsEarly => Totals { bytes, rows },
        })
    }

    /// A message that no correct replica would send here, although its CRC is right.
    fn forge(&mut self, chunk: &Chunk, chunk_bytes: usize) -> Content {
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
        Content::Chunk(forged.write(), forged.bytes)
    }
}
