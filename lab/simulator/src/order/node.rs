//! The simulated consensus node: its chain, and the nodes that stand in for it.

use mesh_ingest::order::{Event, Link};

use crate::source::Rng;

/// Time from one block to the next.
pub(super) const PERIOD: u64 = 400;

pub(super) const CHAIN: &str = "net-1";
const OTHER_CHAIN: &str = "net-2";

/// What is wrong with the node's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    /// Blocks from this height are others.
    Forked(u64),
    /// It ends at this height.
    Short(u64),
    /// All blocks are of another chain.
    OtherChain,
}

pub(super) struct Node {
    /// Length of the chain.
    pub(super) blocks: u64,
    /// The other node, and until when it is there.
    replaced: Option<(Replaced, u64)>,
    /// The store never loses this block, the first one of the highest fork: replicas may have fetched others in its place.
    pub(super) kept: u64,
}

pub(super) fn hash(height: u64) -> String {
    if height == 0 { String::new() } else { format!("h{height}") }
}

impl Node {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { blocks: 20 + rng.below(100), replaced: None, kept: 1 }
    }

    /// Replaces the node until a time. Blocks that the store does not have stay the same: a store cannot know that
    /// they will be others.
    pub(super) fn replace(&mut self, stored: u64, until: u64, now: u64, rng: &mut Rng) {
        let replaced = match rng.below(4) {
            0 => Replaced::OtherChain,
            1 => Replaced::Short(rng.below(self.latest(now) + 1)),
            _ => {
                let from = 1 + rng.below(stored);
                self.kept = self.kept.max(from);
                Replaced::Forked(from)
            }
        };
        self.replaced = Some((replaced, until));
    }

    fn replaced(&self, now: u64) -> Option<Replaced> {
        self.replaced.filter(|(_, until)| *until > now).map(|(replaced, _)| replaced)
    }

    /// The height of the newest block.
    pub(super) fn latest(&self, now: u64) -> u64 {
        let latest = (now / PERIOD + 1).min(self.blocks);
        match self.replaced(now) {
            Some(Replaced::Short(height)) => latest.min(height),
            _ => latest,
        }
    }

    pub(super) fn status(&self, now: u64) -> Event {
        Event::Node(self.chain(now).to_owned(), 1, self.latest(now))
    }

    fn chain(&self, now: u64) -> &'static str {
        if self.replaced(now) == Some(Replaced::OtherChain) { OTHER_CHAIN } else { CHAIN }
    }

    pub(super) fn link(&self, height: u64, now: u64, rng: &mut Rng) -> Link {
        let name = |height: u64| match self.replaced(now) {
            Some(Replaced::Forked(from)) if height >= from => format!("f{height}"),
            Some(Replaced::OtherChain) if height > 0 => format!("o{height}"),
            _ => hash(height),
        };
        let chain_id = self.chain(now).to_owned();
        let bytes = 500 + rng.below(3_000) as usize;
        Link { chain_id, hash: name(height), parent: name(height - 1), bytes }
    }
}
