//! Prepares and fills the database of a mesh, for the command line, the demo network and tests: migrations and users,
//! folders of CSV files, sealed segments, and blocks behind the newest one. No service uses it.

mod copy_in;
mod error;
pub mod import;
pub mod load;
pub mod migrate;
mod records;
pub mod roles;
mod sequence;
mod staging;
mod tables;
mod write;

pub use error::LoadError;
pub use write::BlockWriter;
