//! Segments as a chain (I1): no gap, no overlap, each previous id that of the segment before.

use std::fmt;

use crate::{
    name::SegmentName,
    segment::{Segment, SegmentList},
};

/// A fault of an object of a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {what}")]
pub struct Fault {
    /// The object's name.
    pub object: String,
    /// Description of the fault.
    pub what: String,
}

impl Fault {
    pub(crate) fn of(object: impl fmt::Display, what: impl Into<String>) -> Fault {
        Fault { object: object.to_string(), what: what.into() }
    }
}

impl SegmentList {
    /// The faults of the segments of one chain, in rising order of height; empty when it is whole. The heights
    /// of unreadable segments are taken from their names.
    pub fn chain_faults(&self) -> Vec<Fault> {
        let readable = self.segments.iter().map(|segment| (&segment.name, Some(&**segment)));
        let unreadable = self.unreadable.iter().map(|other| (&other.name, None));
        let mut all: Vec<(&SegmentName, Option<&Segment>)> = readable.chain(unreadable).collect();
        all.sort_by_key(|(name, _)| *name);
        let mut faults = Vec::new();
        let mut before: Option<(&SegmentName, Option<&Segment>)> = None;
        for (name, segment) in all {
            if let Some(before) = before
                && let Some(what) = broken(before, (name, segment))
            {
                faults.push(Fault::of(name, what));
            }
            if before.is_none_or(|(other, _)| other.height_to < name.height_to) {
                before = Some((name, segment));
            }
        }
        faults
    }
}

/// The faults between a segment and the one before it with the highest end.
fn broken(
    (before, earlier): (&SegmentName, Option<&Segment>),
    (name, later): (&SegmentName, Option<&Segment>),
) -> Option<String> {
    if name.height_from <= before.height_to {
        return Some(format!("its heights are also those of {before}"));
    }
    let free = before.height_to + 1;
    if name.height_from > free {
        return Some(format!("no segment holds the heights {free} to {} before it", name.height_from - 1));
    }
    let (earlier, later) = (earlier?, later?);
    if later.previous_id != Some(earlier.id) {
        return Some(match later.previous_id {
            Some(id) => format!("its previous id is {id}, but {before} has the id {}", earlier.id),
            None => format!("it names no previous segment, but {before} ends right before it"),
        });
    }
    (later.block_time_from <= earlier.block_time_to)
        .then(|| format!("its first block is not later than the last one of {before}"))
}
