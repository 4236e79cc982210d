//! The faults of a simulation: their probabilities and their counts.

use std::ops::{Index, IndexMut};

use crate::source::Rng;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A message or a pull is lost.
    Drop,
    /// A message arrives twice.
    Duplicate,
    /// A message is delayed.
    Delay,
    /// A bit of a message is flipped.
    Corrupt,
    /// A message arrives that no correct replica would send.
    Forge,
    /// A problem after which a repetition succeeds.
    Transient,
    /// A problem that ends the stream.
    Fatal,
    /// A pull ends before its budget.
    StopShort,
    /// The reported start of the next pull is not the end of this one.
    WrongNext,
    /// An end with wrong totals, or before the end of the source.
    Lie,
    /// A replica freezes.
    Freeze,
    /// A replica dies.
    Die,
}

/// A number for each kind of fault: how often it occurred, or its probability per thousand messages or pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerFault(pub(crate) [u32; 12]);

impl Index<Fault> for PerFault {
    type Output = u32;

    fn index(&self, fault: Fault) -> &u32 {
        &self.0[fault as usize]
    }
}

impl IndexMut<Fault> for PerFault {
    fn index_mut(&mut self, fault: Fault) -> &mut u32 {
        &mut self.0[fault as usize]
    }
}

impl PerFault {
    /// Draws the probabilities of a simulation; a calm one has few faults.
    pub(crate) fn draw(rng: &mut Rng, is_calm: bool) -> Self {
        let mut rates = Self::default();
        let rows = [
            (Fault::Drop, 400, 250),
            (Fault::Delay, 300, 300),
            (Fault::Corrupt, 300, 200),
            (Fault::Forge, 300, 300),
            (Fault::Transient, 300, 400),
            (Fault::Fatal, 40, 60),
            (Fault::WrongNext, 100, 300),
        ];
        for (fault, often, most) in rows {
            if !is_calm && rng.chance(often) {
                rates[fault] = rng.below(most) as u32;
            }
        }
        // Also in a calm simulation: duplicates alone must change nothing.
        if rng.chance(300) {
            rates[Fault::Duplicate] = rng.below(300) as u32;
        }
        rates[Fault::StopShort] = 100;
        rates
    }
}

/// False reports of replicas about the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    Bytes,
    Rows,
    EndsEarly,
}
