//! The workload on real servers: sealing, pulling, and the process that does both.

#![allow(clippy::unwrap_used)] // in what the tests share

mod fixture;
mod process;
mod pulling;
mod sealing;
mod spans;
