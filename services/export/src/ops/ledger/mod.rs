//! What the ledger export is made of: positions, records, and the walk that pulls are answered from.

pub(crate) mod accounts;
pub(crate) mod kept;
mod merge;
pub(super) mod position;
mod record;
pub(crate) mod walk;
