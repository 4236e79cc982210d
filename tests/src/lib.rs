//! The whole mesh, seen from outside: what its tests share. They know HTTP, the contract and the tables, and
//! nothing of what lies between.

pub mod cases;
pub mod fixture;
pub mod outside;
pub mod problem;
pub mod raw;
pub mod tunnel;

/// Leaves the edge without its cache of answers: for tests of what lies behind it.
pub const NO_CACHE: (&str, &str) = ("MESH_EDGE_CACHE_BYTES", "0");
