//! Layouts that were made lately: every pull of an export needs its layout, and making one walks all its segments.

use std::{collections::VecDeque, sync::Arc};

use mesh_history::{Held, Layout, LayoutError};

/// Layouts that are kept.
const KEPT: usize = 64;

/// What names an export: table, first and last height.
type Key = (&'static str, u64, u64);

/// A few layouts, those used last in front.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    /// With the listing they were made from.
    kept: VecDeque<(Key, Arc<Held>, Arc<Layout>)>,
}

impl Layouts {
    /// The layout over these segments.
    ///
    /// # Errors
    /// See [`Layout::of`].
    pub(crate) fn over(&mut self, held: &Arc<Held>, key: Key) -> Result<Arc<Layout>, LayoutError> {
        let is_it = |(kept, from, _): &(Key, Arc<Held>, _)| *kept == key && Arc::ptr_eq(from, held);
        if let Some(at) = self.kept.iter().position(is_it) {
            return Ok(self.use_again(at));
        }
        let layout = Arc::new(Layout::of(held, key.0, key.1, key.2)?);
        // A new listing with the same segments of this range makes the same layout.
        self.kept.retain(|(kept, _, old)| *kept != key || old.fingerprint != layout.fingerprint);
        self.kept.push_front((key, Arc::clone(held), Arc::clone(&layout)));
        self.kept.truncate(KEPT);
        Ok(layout)
    }

    /// The layout of this fingerprint, if it is kept.
    pub(crate) fn known(&mut self, key: Key, fingerprint: &str) -> Option<Arc<Layout>> {
        let is_it =
            |(kept, _, layout): &(Key, _, Arc<Layout>)| *kept == key && layout.fingerprint == fingerprint;
        let at = self.kept.iter().position(is_it)?;
        Some(self.use_again(at))
    }

    fn use_again(&mut self, at: usize) -> Arc<Layout> {
        let entry = self.kept.remove(at).expect("it was found there");
        let layout = Arc::clone(&entry.2);
        self.kept.push_front(entry);
        layout
    }
}
