//! The names of the processes of a mesh other than services, as `ps`, `stop` and `start` spell them.

/// The private database server.
pub const POSTGRES: &str = "postgres";
/// The private bus server.
pub const NATS: &str = "nats-server";
/// The development node.
pub const DEVNODE: &str = "devnode";
/// The real consensus node.
pub const COMETBFT: &str = "cometbft";
/// Its application.
pub const APPLICATION: &str = "application";
