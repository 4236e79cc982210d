//! Height, time and hash of a block, and the trait of their source.

use std::future::Future;

use crate::moment::Moment;

/// Height, time and hash of a block, decided before its rows are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its height.
    pub height: u64,
    /// Its time.
    pub time: Moment,
    /// Its hash, when a consensus node has decided the block; otherwise it follows from the rows.
    pub hash: Option<String>,
}

/// A source of decided blocks.
pub trait Decisions: Send {
    /// Waits until the block of a height is decided. Cancel safe; may be called again for the same height.
    fn decide(&mut self, height: u64) -> impl Future<Output = Decision> + Send;
}
