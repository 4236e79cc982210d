//! Paged lists (contract section 3). A list is declared once ([`List`]): its table, sort key, columns and
//! filters. From that follow its cursors, the pagination of a request ([`Window`]) and the statement that
//! reads a page. Each combination of filters, direction and start has its own statement (decision 003).

mod bound;
mod cursor;
mod page;
mod shape;
mod statement;
mod text;
mod value;
mod window;

use crate::Past;

pub use page::{ListPage, PageEdge, PageRows};
pub use statement::Statement;
pub use value::Value;
pub use window::{PageRequest, PageSizes, Window};

/// The declaration of a list.
#[derive(Debug)]
pub struct List {
    /// Name of the list inside its cursors (P8) and in the first line of its statements.
    pub name: &'static str,
    /// The table that holds its rows.
    pub table: &'static str,
    /// The total sort key: columns that never change for a row and are never NULL (P2).
    pub key: &'static [KeyColumn],
    /// Further columns of a row, as in SQL: `amount::text AS amount`.
    pub columns: &'static [&'static str],
    /// Whether rows with equal keys make one row of the list; `columns` are then aggregates.
    pub is_grouped: bool,
    /// The filters, in the order in which a request gives their values.
    pub filters: &'static [Filter],
    /// Filtered columns whose rows are read along an index that is declared `NULLS FIRST` on the first column
    /// of the key. A statement with this order can use no other index, independently of the statistics; key
    /// columns are never NULL, so the order does not change.
    pub indexed: &'static [&'static str],
    /// Sets of such columns whose rows are read along an index without this mark, when all are filtered.
    pub plainly_indexed: &'static [&'static [&'static str]],
    /// What stands for the table in reads as of a block: of several sources the first one whose filters are given.
    pub past: &'static [PastSource],
    /// The greatest first key column of the rows of a block, with which their walks begin; for a list with
    /// [`Filter::AtMost`].
    pub past_bound: Option<fn(&Past) -> Value>,
}

impl List {
    /// Defaults: a declaration that ends with `..List::PLAIN` leaves out what the list does not use.
    pub const PLAIN: Self = Self {
        name: "",
        table: "",
        key: &[],
        columns: &[],
        is_grouped: false,
        filters: &[],
        indexed: &[],
        plainly_indexed: &[],
        past: &[],
        past_bound: None,
    };
}

/// The rows of a list as of a block.
#[derive(Debug)]
pub struct PastSource {
    /// Filtered columns that must be given. The last source of a list is for all other requests.
    pub by: &'static [&'static str],
    /// Filtered columns that come from the version of the time, so that no index finds rows by them: one walk tests
    /// them.
    pub of_version: &'static [&'static str],
    /// A SELECT of the columns of the table. `{time}` stands for the time of the block, `{column}` for the value of a
    /// filtered column, `{order}` for the ORDER BY of the walk.
    pub sql: &'static str,
}

impl PastSource {
    /// A source for any filters.
    pub const fn new(sql: &'static str) -> Self {
        Self { by: &[], of_version: &[], sql }
    }
}

/// A column of a sort key.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: KeyKind,
}

/// The type of a key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// `int8`.
    Integer,
    /// `text COLLATE "C"`.
    Text,
    /// `timestamptz`; nanoseconds in cursors.
    Time,
    /// A party in the form of [`Value::party`], which sorts `network` before all others; the party in cursors.
    Party,
}

impl KeyKind {
    /// A key column of this type.
    pub const fn column(self, name: &'static str) -> KeyColumn {
        KeyColumn { name, kind: self }
    }
}

/// A filter of a list. A request may leave each of them out.
#[derive(Debug, Clone, Copy)]
pub enum Filter {
    /// The column has this value.
    Equal(&'static str),
    /// The column has one of these values ([`Value::Texts`], [`Value::Smalls`]).
    AnyOf(&'static str),
    /// The column is true. The filter is given with any value, which is not used.
    Flag(&'static str),
    /// One of these columns has this value. Each is walked by itself, and the walks are merged. In
    /// [`List::indexed`] the first one stands for both. A list has one such filter at most, and then
    /// none of several values.
    EitherOf([&'static str; 2]),
    /// The first column of the key is at least this value.
    AtLeast,
    /// The first column of the key is at most this value.
    AtMost,
    /// A condition of SQL in which `$` stands for the value: `approvers @> ARRAY[$]`.
    Matches(&'static str),
}

impl Filter {
    /// The column that it compares with one or several values, so that no index needs to be ordered by it.
    pub(crate) fn column(&self) -> Option<&'static str> {
        match self {
            Self::Equal(column) | Self::AnyOf(column) | Self::Flag(column) | Self::EitherOf([column, _]) => {
                Some(column)
            }
            Self::AtLeast | Self::AtMost | Self::Matches(_) => None,
        }
    }
}
