//! Pages: the rows of a statement in display order, with their cursors.

use std::cmp::Ordering;

use tokio_postgres::Row;

use super::{KeyKind, List, Statement, Value, Window, cursor};
use crate::{
    Past, TimeUs,
    read::{Parameter, Query, ReadError, Store, block_of},
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

/// The rows of a page in the order of the walk.
#[derive(Debug)]
pub struct PageRows {
    rows: Vec<Row>,
    head: Option<(u64, i64)>,
    /// Whether a row lies at the start or behind it.
    behind: bool,
    /// Most rows of the page, if these are fewer than those of the request.
    limit: Option<usize>,
}

/// Bytes of the rows of a page, as PostgreSQL sends them, above which they are read again, with fewer rows: several times as many as
/// answers have.
const MOST_BYTES: usize = 16 << 20;

/// Bytes of rows that fill an answer.
const ENOUGH_BYTES: usize = 4 << 20;

/// Index of the first key column: those before are the head and whether there are rows behind the start.
const FIRST_KEY_COLUMN: usize = 3;

impl Store {
    /// Reads the rows of a page of a list; `filters` and `past` as in [`List::statement`]. Of rows with more bytes than any answer
    /// has, only those that fill one.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn page_rows(
        &self,
        list: &'static List,
        window: &Window,
        filters: Vec<Option<Value>>,
        past: Option<&Past>,
    ) -> Result<PageRows, ReadError> {
        let most_bytes = Some(MOST_BYTES);
        let rows = self.walk(list, list.statement(window, filters.clone(), past), most_bytes, past).await?;
        let Some(limit) = enough(&rows) else { return PageRows::new(rows, past, None) };
        // The rows that were read may not be the first of the walk: no statement guarantees an order.
        let smaller = Window { limit, ..window.clone() };
        let rows = self.walk(list, list.statement(&smaller, filters, past), None, past).await?;
        PageRows::new(rows, past, Some(limit))
    }

    async fn walk(
        &self,
        list: &'static List,
        statement: Statement,
        most_bytes: Option<usize>,
        past: Option<&Past>,
    ) -> Result<Vec<Row>, ReadError> {
        let parameters: Vec<_> = statement.parameters.iter().map(|value| value as _).collect();
        let query = Query { sql: statement.sql, parameters: &parameters, most_bytes };
        let rows = self.lists(list.name, &[query], past).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Reads the rows of several pages in one snapshot. They use the share of connections of the list `name`. A page with more than
    /// 16 MiB has no row, and says that rows follow.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn snapshot(
        &self,
        name: &'static str,
        pages: &[Statement],
        past: Option<&Past>,
    ) -> Result<Vec<PageRows>, ReadError> {
        let parameters = pages.iter().map(|page| page.parameters.iter().map(|value| value as _).collect());
        let parameters: Vec<Vec<Parameter<'_>>> = parameters.collect();
        let queries = pages.iter().zip(&parameters);
        let queries: Vec<_> = queries
            .map(|(page, parameters)| Query { sql: page.sql, parameters, most_bytes: Some(MOST_BYTES) })
            .collect();
        let pages = self.lists(name, &queries, past).await?;
        // A page of which not all rows were read has no row: the first ones may be missing.
        let page = |rows: Vec<Row>| {
            let limit = enough(&rows).map(|_| 0);
            PageRows::new(rows, past, limit)
        };
        pages.into_iter().map(page).collect()
    }
}

/// How many rows of a page's statement fill an answer, when they have [`MOST_BYTES`]. The first one is the head.
fn enough(rows: &[Row]) -> Option<usize> {
    if rows.iter().map(Row::raw_size_bytes).sum::<usize>() < MOST_BYTES {
        return None;
    }
    let mut sum = 0;
    let filled = rows.iter().position(|row| {
        sum += row.raw_size_bytes();
        sum >= ENOUGH_BYTES
    });
    filled.map(|index| index.max(1))
}

impl PageRows {
    /// The rows of a page's statement: the head, then the page. As of a block that is their head.
    fn new(rows: Vec<Row>, past: Option<&Past>, limit: Option<usize>) -> Result<Self, ReadError> {
        let mut rows = rows.into_iter();
        let (head, behind) = match rows.next() {
            Some(row) => (block_of(&row, past)?, row.try_get("behind")?),
            None => (None, false),
        };
        Ok(Self { rows: rows.collect(), head, behind, limit })
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The newest block that was read together with the rows: height and nanoseconds since the Unix epoch.
    pub fn head(&self) -> Option<(u64, i64)> {
        self.head
    }

    /// Makes the page of them.
    ///
    /// # Errors
    /// When a key does not decode.
    pub fn page(self, list: &List, window: &Window) -> Result<ListPage, ReadError> {
        let Self { rows, head, behind, limit } = self;
        let window = Window { limit: limit.unwrap_or(window.limit), ..window.clone() };
        let (rows, [has_next_page, has_previous_page]) =
            window.arrange(rows, behind, |one, other| list.compare(one, other));
        let edges = rows.into_iter().map(|row| {
            let cursor = cursor::encode(list, list.key_texts(&row)?);
            Ok(PageEdge { cursor, row })
        });
        let edges = edges.collect::<Result<_, ReadError>>()?;
        Ok(ListPage { edges, has_next_page, has_previous_page, head })
    }
}

impl List {
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
