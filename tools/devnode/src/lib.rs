//! A development node: the RPC of a consensus node (CometBFT 0.38) over a chain of one, whose blocks somebody
//! else makes.
//!
//! Transactions come in by broadcast, are judged by the network's rules (`mesh-transaction`), wait for the
//! next block and are kept with it in a file that survives a crash. For `mesh up` and for tests; no
//! consensus.
//!
//! And the [`Application`] of a real node, which judges and keeps in the same way what CometBFT decides.

mod abci;
mod accept;
mod answers;
mod application;
mod broadcasts;
mod call;
mod chain;
mod file;
mod mempool;
mod node;
mod open;
mod port;
mod rpc;
mod server;
mod settings;
mod subscription;
mod table;

pub use abci::serve_application;
pub use application::{Application, ApplicationError};
pub use broadcasts::received;
pub use chain::{Chain, CommitError, Delivered};
pub use mempool::BroadcastError;
pub use node::DevNode;
pub use port::ReservedPort;
pub use settings::{Checks, Limits, Settings};
