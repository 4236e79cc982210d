//! Layouts that were made lately: every pull of an export needs its layout, and making one walks all its segments.

use std::{collections::VecDeque, sync::Arc};

use mesh_history::{Held, Layout, LayoutError};

/// Layouts that are kept.
const KEPT_AT_MOST: usize = 64;

/// What names an export: table, first and last height.
type Key = (&'static str, u64, u64);

/// A layout with the listing that it was made from.
type Kept = (Key, Arc<Held>, Arc<Layout>);

/// A few layouts, those used last in front.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    kept: VecDeque<Kept>,
}

impl Layouts {
    /// The layout over these segments.
    ///
    /// # Errors
    /// See [`Layout::of`].
    pub(crate) fn over(&mut self, held: &Arc<Held>, key: Key) -> Result<Arc<Layout>, LayoutError> {
        let is_it = |(kept, from, _): &Kept| *kept == key && Arc::ptr_eq(from, held);
        if let Some(layout) = self.use_again(is_it) {
            return Ok(layout);
        }
        let layout = Arc::new(Layout::of(held, key.0, key.1, key.2)?);
        // A new listing with the same segments of this range makes the same layout.
        self.kept.retain(|(kept, _, old)| *kept != key || old.fingerprint != layout.fingerprint);
        self.kept.push_front((key, Arc::clone(held), Arc::clone(&layout)));
        self.kept.truncate(KEPT_AT_MOST);
        Ok(layout)
    }

    /// The layout of this fingerprint, if it is kept.
    pub(crate) fn known(&mut self, key: Key, fingerprint: &str) -> Option<Arc<Layout>> {
        let is_it = |(kept, _, layout): &Kept| *kept == key && layout.fingerprint == fingerprint;
        self.use_again(is_it)
    }

    /// Finds one and brings it to the front.
    fn use_again(&mut self, is_it: impl Fn(&Kept) -> bool) -> Option<Arc<Layout>> {
        let at = self.kept.iter().position(is_it)?;
        let entry = self.kept.remove(at)?;
        let layout = Arc::clone(&entry.2);
        self.kept.push_front(entry);
        Some(layout)
    }
}
