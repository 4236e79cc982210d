//! Starts and supervises the servers and services of one machine.
//!
//! [`home`] says where things lie, [`process`] is one child, [`servers`] finds PostgreSQL and nats-server,
//! [`bus`] and [`database`] are how services are let in there, [`services`] is the table of our own
//! workloads, [`supervisor`] keeps all of them alive, and [`control`] is how a second command line talks to a
//! mesh that runs.

pub mod bus;
pub mod control;
pub mod database;
pub mod home;
mod managed_process;
pub mod process;
mod ready;
mod restart;
mod rolling;
pub mod servers;
pub mod services;
pub mod supervisor;
pub mod workspace;

pub use managed_process::ReplicaSpec;
pub use ready::{Probe, Ready};
pub use restart::{Backoff, RestartRule};
pub use rolling::MOST_REPLICAS;
