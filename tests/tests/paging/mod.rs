//! Cursor pages of all lists from outside (contract sections 3 and 9, invariant I5): the lists of the
//! contract over random rows, compared with the oracles. Byte order of texts (P2) and equal values in every
//! column are in those rows.

mod bytes;
mod changes;
mod cursors;
mod sizes;
mod walks;
mod world;

use world::{View, World, at, pages};

/// The seeds of the random tests: one fixed and one random. `MESH_TEST_SEED` repeats a run; a failed test
/// prints its seed.
fn seeds() -> Vec<u64> {
    let given =
        std::env::var("MESH_TEST_SEED").ok().map(|seed| seed.parse().expect("MESH_TEST_SEED is a number"));
    let seeds = given.map_or_else(|| vec![1, rand::random()], |seed| vec![seed]);
    println!("seeds, in this order: {seeds:?}");
    seeds
}
