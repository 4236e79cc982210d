//! What the ledger export is made of: positions, records, and the walk that pulls are answered from.

pub(super) mod position;
pub(super) mod record;
pub(super) mod walk;
