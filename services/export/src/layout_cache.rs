//! A cache of layouts: every pull of an export needs its layout, and making one visits all its segments.

use std::{collections::VecDeque, sync::Arc};

use mesh_history::{Layout, LayoutError, SegmentList};
use proto_msgs::v2::Table;

/// Most cached layouts.
const MAX_CACHED: usize = 64;

/// An export: table, first and last height.
type Key = (Table, u64, u64);

/// A layout with the listing that it was made from.
type CacheEntry = (Key, Arc<SegmentList>, Arc<Layout>);

/// The layouts used most recently, newest first.
#[derive(Debug, Default)]
pub(crate) struct LayoutCache {
    entries: VecDeque<CacheEntry>,
}

impl LayoutCache {
    /// The layout over these segments, made when it is not cached.
    ///
    /// # Errors
    /// See [`Layout::of`].
    pub(crate) fn get_or_make(
        &mut self,
        list: &Arc<SegmentList>,
        key: Key,
    ) -> Result<Arc<Layout>, LayoutError> {
        let matches = |(cached, from, _): &CacheEntry| *cached == key && Arc::ptr_eq(from, list);
        if let Some(layout) = self.touch(matches) {
            return Ok(layout);
        }
        let layout = Arc::new(Layout::of(list, &key.0.relation(), key.1, key.2)?);
        // Replaces the same layout made from an older listing.
        self.entries.retain(|(cached, _, old)| *cached != key || old.fingerprint != layout.fingerprint);
        self.entries.push_front((key, Arc::clone(list), Arc::clone(&layout)));
        self.entries.truncate(MAX_CACHED);
        Ok(layout)
    }

    /// The cached layout of this fingerprint.
    pub(crate) fn get(&mut self, key: Key, fingerprint: &str) -> Option<Arc<Layout>> {
        let matches = |(cached, _, layout): &CacheEntry| *cached == key && layout.fingerprint == fingerprint;
        self.touch(matches)
    }

    /// Finds an entry and moves it to the front.
    fn touch(&mut self, matches: impl Fn(&CacheEntry) -> bool) -> Option<Arc<Layout>> {
        let at = self.entries.iter().position(matches)?;
        let entry = self.entries.remove(at)?;
        let layout = Arc::clone(&entry.2);
        self.entries.push_front(entry);
        Some(layout)
    }
}
