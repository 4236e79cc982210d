//! The slot of one pipelined connection: emptied when the connection breaks, filled when it is made again.

use std::sync::Arc;

use parking_lot::RwLock;

use super::pipeline::Pipeline;

/// One connection, or none while it is being made.
#[derive(Default)]
pub(super) struct Slot(RwLock<Option<Arc<Pipeline>>>);

impl Slot {
    /// The connection, open or not.
    pub(super) fn get(&self) -> Option<Arc<Pipeline>> {
        self.0.read().clone()
    }

    /// The connection, if it is open.
    pub(super) fn get_open(&self) -> Option<Arc<Pipeline>> {
        self.0.read().as_ref().filter(|pipeline| pipeline.is_open()).cloned()
    }

    /// Replaces the connection.
    pub(super) fn set(&self, pipeline: Option<Arc<Pipeline>>) {
        *self.0.write() = pipeline;
    }
}
