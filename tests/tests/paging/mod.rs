//! Cursor pages of all lists from outside (contract sections 3 and 9, invariant I5).

mod accounts;
mod bytes;
mod changes;
mod cursors;
mod data;
pub(crate) mod list;
mod meshes;
pub(crate) mod page;
mod rules;
mod walks;
mod worked_table;

/// The seeds of the random tests: one fixed and one random. `MESH_TEST_SEED` repeats a run; a failed test
/// prints its seed.
fn seeds() -> Vec<u64> {
    let given =
        std::env::var("MESH_TEST_SEED").ok().map(|seed| seed.parse().expect("MESH_TEST_SEED is a number"));
    let seeds = given.map_or_else(|| vec![1, rand::random()], |seed| vec![seed]);
    println!("seeds, in this order: {seeds:?}");
    seeds
}
