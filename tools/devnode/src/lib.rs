//! A development node: the RPC of a consensus node (CometBFT 0.38) over a chain with a single node, whose
//! blocks the caller makes.
//!
//! Transactions are broadcast, checked by the network's rules (`mesh-transaction`), wait in a mempool for the
//! next block and are stored with it in a file that survives a crash. For `mesh up` and for tests; there is
//! no consensus.
//!
//! Also the [`Application`] of a real node, which checks by the same rules and stores in the same file format
//! what CometBFT decides.

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
