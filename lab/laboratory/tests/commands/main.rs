//! The program of the laboratory from outside, without its drills.
#![allow(clippy::unwrap_used)] // in what the tests share

mod baseline;
mod usage;
