//! The ledger export: positions, records, and the walk over entries that answers pulls.

pub(crate) mod accounts;
mod entries;
mod field;
mod merge;
pub(super) mod position;
mod read;
mod record;
pub(crate) mod walk;
pub(crate) mod walk_cache;
