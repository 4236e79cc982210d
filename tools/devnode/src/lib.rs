//! A development node: the RPC of a consensus node (CometBFT 0.38) over a chain with a single node. For `mesh up`
//! and for tests; there is no consensus.
//!
//! Transactions are broadcast, checked by the network's rules (`mesh-transaction`) and wait in a mempool for the
//! next block. A block, its results and the rows that it causes (as events) are stored in a file before they are
//! announced; the [`Base`] of that file is the block that the chain continues.
//!
//! The [`Application`] checks, executes and stores; a real CometBFT uses it over ABCI.

mod abci;
mod accept;
mod answers;
mod application;
mod base;
mod broadcasts;
mod call;
mod chain;
mod chain_file;
mod execution;
mod file;
mod mempool;
mod node;
mod port;
mod positions;
mod rpc;
mod server;
mod settings;
mod stored;
mod subscription;

pub use abci::serve_application;
pub use application::{Application, Delivered};
pub use base::Base;
pub use broadcasts::received;
pub use chain::Chain;
pub use chain_file::ChainFile;
pub use mempool::BroadcastError;
pub use node::DevNode;
pub use port::ReservedPort;
pub use settings::{Checks, Limits, Settings};
