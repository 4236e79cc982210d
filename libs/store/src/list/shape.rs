//! The shape of a request: what the text of its statement depends on.

use super::bound::Bound;

/// What the text of a statement depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) list: &'static str,
    pub(super) filters: Vec<Given>,
    pub(super) descending: bool,
    pub(super) bound: Bound,
    /// Whether the page is as of a block.
    pub(super) is_past: bool,
}

/// How a filter is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Given {
    No,
    OneValue,
    /// Several values of [`super::Filter::AnyOf`], as an array of this type.
    Values(&'static str),
    /// A condition without a value.
    Flag,
}
