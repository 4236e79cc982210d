//! Starts and supervises the servers and services of one machine.

pub mod process;
pub mod servers;
pub mod supervisor;
