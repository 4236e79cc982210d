//! A demo network: a simulated trading network with a realistic history, made from a seed. It fills an empty
//! database with data to explore, and adds a block every second.
//!
//! [`Simulator`] makes blocks as rows of text, without any I/O: the same [`Plan`] gives the same rows to the
//! byte. [`write_history`] loads the history, [`run_live`] and [`Feeder`] continue after it.

mod block;
mod catalogue;
mod decision;
mod error;
mod feeder;
mod funding;
mod governance;
mod history;
mod json;
mod labels;
mod lifecycle;
mod liquidity;
mod live;
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
mod state_file;
mod trading;
mod traffic;
mod world;

pub use block::Block;
pub use decision::{Decision, Decisions};
pub use error::DemoError;
pub use feeder::Feeder;
pub use history::{Written, write_history};
pub use live::{Event, run_decided, run_live};
pub use moment::Moment;
pub use plan::{CHAIN_ID, MIN_BLOCK_GAP_US, Plan};
pub use rows::Rows;
pub use session::Head;
pub use simulator::Simulator;
