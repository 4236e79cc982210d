//! The order of work of `ingest`: two simulated replicas bring a chain into a simulated store while replicas die
//! and freeze, servers are unavailable, commits lose their connection, the store loses its newest blocks,
//! blocks are wrong for a while, and the node is replaced by a forked one, one with a shorter chain, or one of another
//! chain. All from one seed.
//!
//! The store must end with exactly the chain, and no replica may be halted then. Times are in simulated
//! milliseconds.

mod node;
mod replica;
mod store;
mod world;

use self::world::World;
use crate::Failure;

/// What happened in simulations of the order of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderTotals {
    /// Blocks of the chains.
    pub blocks: u64,
    /// Transactions that stored them.
    pub transactions: u64,
    /// Replicas that were killed.
    pub kills: u64,
    /// Replicas that were frozen.
    pub freezes: u64,
    /// Servers that were unavailable for a while.
    pub outages: u64,
    /// Times at which the store lost its newest blocks.
    pub failovers: u64,
    /// Nodes that were replaced by one with another chain for a while.
    pub replaced: u64,
    /// Blocks that were wrong for a while.
    pub wrong: u64,
    /// Transactions that were refused because another replica had stored the block.
    pub moved: u64,
    /// Times at which a replica began to halt.
    pub halts: u64,
}

impl OrderTotals {
    /// The totals by their names.
    pub fn named(self) -> [(&'static str, u64); 10] {
        [
            ("blocks", self.blocks),
            ("transactions", self.transactions),
            ("kills", self.kills),
            ("freezes", self.freezes),
            ("outages", self.outages),
            ("failovers", self.failovers),
            ("replaced", self.replaced),
            ("wrong", self.wrong),
            ("moved", self.moved),
            ("halts", self.halts),
        ]
    }
}

/// Simulates two replicas on one chain.
///
/// # Errors
/// When a block is missing in the store, there twice or another one, a block does not continue the one before it,
/// or the work stops.
pub fn simulate_order(seed: u64) -> Result<OrderTotals, Failure> {
    World::new(seed).run().map_err(|what| Failure { seed, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_ends_with_the_chain_under_all_faults() {
        let mut totals = OrderTotals::default().named();
        for seed in 0..2_000 {
            let found = simulate_order(seed).unwrap_or_else(|failure| panic!("{failure}"));
            totals.iter_mut().zip(found.named()).for_each(|((_, total), (_, count))| *total += count);
        }
        let [(_, blocks), (_, transactions), faults @ ..] = totals;
        assert!(transactions > 5_000 && transactions < blocks, "{totals:?}");
        for (name, count) in faults {
            assert!(count > 500, "{name}: {totals:?}");
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_run() {
        for seed in 0..50 {
            assert_eq!(simulate_order(seed), simulate_order(seed));
        }
    }
}
