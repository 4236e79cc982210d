//! A demo network: a trading network with a plausible history, made from a seed.
//!
//! Each market has a price that walks at random, each party a role, and each kind of event a template of its
//! rows. [`Simulator`] makes blocks as rows, without any I/O: the same [`Plan`], block times and transactions
//! give the same rows to the byte. [`write_history`] loads the history into an empty database; a node makes
//! the blocks after it and sends their rows as events ([`Rows::events`]).

#[macro_use]
mod rows;
mod block;
mod catalogue;
mod commands;
mod error;
mod funding;
mod governance;
mod history;
mod liquidity;
mod market;
mod market_rows;
mod oracles;
mod order;
mod plan;
mod position;
mod random;
mod simulator;
mod staking;
mod trading;
mod walk;
mod world;

pub use block::{Block, Executed};
pub use commands::Transaction;
pub use error::DemoError;
pub use history::write_history;
pub use mesh_store::TimeUs;
pub use plan::{CHAIN_ID, MIN_BLOCK_GAP_US, Plan};
pub use rows::{Record, RowEvent, Rows};
pub use simulator::Simulator;
