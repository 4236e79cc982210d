//! Pages: the rows of a statement in display order, with their cursors.

use std::cmp::Ordering;

use tokio_postgres::Row;

use super::{KeyKind, List, Value, Window, cursor};
use crate::{
    TimeUs,
    read::{ReadError, Store, head_of},
};

/// A page in display order.
#[derive(Debug)]
pub struct ListPage {
    /// Its rows.
    pub edges: Vec<PageEdge>,
    /// Whether a row follows the last one.
    pub has_next_page: bool,
    /// Whether a row precedes the first one.
    pub has_previous_page: bool,
    /// The newest block that was read together with the rows: height and nanoseconds since the Unix epoch.
    pub head: Option<(u64, i64)>,
}

/// A row of a page.
#[derive(Debug)]
pub struct PageEdge {
    /// Its cursor (P8).
    pub cursor: String,
    /// The key and the columns of the list, by name.
    pub row: Row,
}

/// Index of the first key column: those before are the head and whether there are rows behind the start.
const FIRST_KEY_COLUMN: usize = 3;

impl Store {
    /// Reads a page of a list; `filters` as in [`List::statement`].
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn page(
        &self,
        list: &'static List,
        window: &Window,
        filters: Vec<Option<Value>>,
    ) -> Result<ListPage, ReadError> {
        let statement = list.statement(window, filters);
        let parameters: Vec<_> = statement.parameters.iter().map(|value| value as _).collect();
        let mut rows = self.list(list.name, statement.sql, &parameters).await?.into_iter();
        let (head, behind) = match rows.next() {
            Some(row) => (head_of(&row)?, row.try_get("behind")?),
            None => (None, false),
        };
        list.page(window, rows.collect(), head, behind)
    }
}

impl List {
    /// Makes a page of its rows in the order of the walk. `behind` = whether a row lies at the start or behind
    /// it.
    fn page(
        &self,
        window: &Window,
        rows: Vec<Row>,
        head: Option<(u64, i64)>,
        behind: bool,
    ) -> Result<ListPage, ReadError> {
        let (rows, [has_next_page, has_previous_page]) =
            window.arrange(rows, behind, |one, other| self.compare(one, other));
        let edges = rows.into_iter().map(|row| {
            let cursor = cursor::encode(self, self.key_texts(&row)?);
            Ok(PageEdge { cursor, row })
        });
        let edges = edges.collect::<Result<_, ReadError>>()?;
        Ok(ListPage { edges, has_next_page, has_previous_page, head })
    }

    pub(crate) fn key_texts(&self, row: &Row) -> Result<Vec<String>, ReadError> {
        let texts = (0..self.key.len())
            .map(|number| Ok(self.key_value(row, number)?.map_or_else(String::new, KeyValue::into_text)));
        texts.collect()
    }

    fn compare(&self, one: &Row, other: &Row) -> Ordering {
        let orders = (0..self.key.len()).map(|number| {
            let value = |row| self.key_value(row, number).ok().flatten();
            value(one).cmp(&value(other))
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn key_value<'a>(&self, row: &'a Row, number: usize) -> Result<Option<KeyValue<'a>>, ReadError> {
        let index = FIRST_KEY_COLUMN + number;
        Ok(match self.key[number].kind {
            KeyKind::Integer => row.try_get::<_, Option<i64>>(index)?.map(KeyValue::Integer),
            KeyKind::Text => row.try_get::<_, Option<&str>>(index)?.map(KeyValue::Text),
            KeyKind::Party => row.try_get::<_, Option<&str>>(index)?.map(KeyValue::Party),
            KeyKind::Time => row.try_get::<_, Option<TimeUs>>(index)?.map(KeyValue::Time),
        })
    }
}

/// A key column of a row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum KeyValue<'a> {
    Integer(i64),
    Text(&'a str),
    Party(&'a str),
    Time(TimeUs),
}

impl KeyValue<'_> {
    /// As in cursors.
    fn into_text(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Text(value) => value.to_owned(),
            Self::Party(form) => Value::party_of(form).to_owned(),
            Self::Time(value) => value.ns().to_string(),
        }
    }
}
