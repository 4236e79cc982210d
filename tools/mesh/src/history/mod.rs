//! `mesh history`: verifies sealed segments, or imports them into a database.

mod import;
mod verify;

pub(crate) use import::import;
pub(crate) use verify::verify;
