//! Starts and supervises the servers and services of one machine.
//!
//! [`home`] has the paths, [`process`] is one child, [`servers`] finds PostgreSQL and nats-server, [`bus`]
//! and [`database`] have their addresses and credentials, [`services`] is the table of the workloads,
//! [`supervisor`] starts, restarts and stops all of them, and [`control`] is the protocol between a command
//! line and a running mesh.

pub mod bus;
pub mod control;
pub mod database;
mod folder;
pub mod home;
mod log_limit;
mod managed_process;
pub mod open_files;
mod private_file;
pub mod process;
pub mod process_group;
mod ready;
mod restart;
mod rolling;
pub mod servers;
pub mod services;
pub mod supervisor;
pub mod workspace;

pub use folder::let_enter;
pub use log_limit::limit_logs;
pub use managed_process::ReplicaSpec;
pub use private_file::{StagedFile, stage_private, stage_replacement, write_private};
pub use ready::{Probe, Ready, local_client, why_unready};
pub use restart::{Backoff, RestartRule};
pub use rolling::without_replicas;
