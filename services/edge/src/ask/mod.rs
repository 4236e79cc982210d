//! Answers of the services: from the cache while they hold, else over the bus, one call for equal reads.

pub(crate) mod answer;
pub(crate) mod answer_memory;
pub(crate) mod backend;
pub(crate) mod block_wait;
pub(crate) mod cache;
pub(crate) mod call_context;
pub(crate) mod heads;
mod singleflight;
