//! A demo network: a simulated trading network with a realistic history, made from a seed.
//!
//! [`Simulator`] makes blocks as rows of text, without any I/O: the same [`Plan`], block times and transactions
//! give the same rows to the byte. [`write_history`] loads the history into an empty database; a node makes the
//! blocks after it and sends their rows as events ([`Rows::events`]).

mod block;
mod catalogue;
mod commands;
mod error;
mod events;
mod funding;
mod governance;
mod history;
mod json;
mod labels;
mod lifecycle;
mod liquidity;
mod market;
mod market_rows;
mod moment;
mod oracles;
mod order;
mod plan;
mod position;
mod price;
mod provision;
mod random;
mod rows;
mod session;
mod settlement;
mod simulator;
mod staking;
mod trading;
mod traffic;
mod world;

pub use block::{Block, Executed};
pub use commands::Transaction;
pub use error::DemoError;
pub use events::RowEvent;
pub use history::write_history;
pub use moment::Moment;
pub use plan::{CHAIN_ID, MIN_BLOCK_GAP_US, Plan};
pub use rows::{Rows, parse_csv};
pub use simulator::Simulator;
