//! The names of the processes of a mesh other than services, as `ps`, `stop` and `start` spell them.

pub use mesh_node::{APPLICATION, COMETBFT, DEVNODE};

/// The private database server.
pub const POSTGRES: &str = "postgres";
/// The private bus server.
pub const NATS: &str = "nats-server";
/// The decoder of a chain that has one.
pub const DECODER: &str = "decoder";
