//! What the ledger export is made of: positions, records, and the walk that pulls are answered from.

pub(crate) mod accounts;
mod merge;
pub(super) mod position;
mod record;
pub(super) mod walk;
