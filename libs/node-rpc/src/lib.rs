//! The RPC of a consensus node (CometBFT, JSON-RPC over HTTP).

mod url;

pub use url::{NodeUrl, foreign_answer};
