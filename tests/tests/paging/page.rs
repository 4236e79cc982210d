//! The request of a page, the received page, and the page that the contract requires.

use mesh_testbed::Answer;
use mesh_tests::client::MeshClient;
use serde_json::{Value, json};

use crate::paging::list::{Key, List, Part, Row, cursor};

/// Parameters of a page request. Without a direction it is the first page forwards, newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageRequest {
    size: Option<usize>,
    backwards: bool,
    oldest_first: bool,
    position: Option<Key>,
    cursor: Option<String>,
}

impl PageRequest {
    pub(crate) fn first(size: usize) -> Self {
        Self { size: Some(size), ..Self::default() }
    }

    pub(crate) fn last(size: usize) -> Self {
        Self { size: Some(size), backwards: true, ..Self::default() }
    }

    /// Starts at a position, with a cursor that the test encodes itself.
    pub(crate) fn at_position(self, list: List, key: &[Part]) -> Self {
        Self { position: Some(key.to_vec()), cursor: Some(cursor(list, key)), ..self }
    }

    /// Starts at a cursor of an earlier answer.
    pub(crate) fn cursor(self, cursor: &str) -> Self {
        Self { position: None, cursor: Some(cursor.to_owned()), ..self }
    }

    pub(crate) fn oldest_first(self) -> Self {
        self.in_order(true)
    }

    pub(crate) fn in_order(self, oldest_first: bool) -> Self {
        Self { oldest_first, ..self }
    }

    pub(crate) fn query(&self) -> String {
        let mut query = String::new();
        let (size, cursor) = if self.backwards { ("last", "before") } else { ("first", "after") };
        if let Some(number) = self.size {
            query.push_str(&format!("&pagination.{size}={number}"));
        }
        if let Some(text) = &self.cursor {
            query.push_str(&format!("&pagination.{cursor}={text}"));
        }
        if self.oldest_first {
            query.push_str("&pagination.newestFirst=false");
        }
        query
    }
}

/// A list with filters, and the rows that pass them, in ascending order of their keys.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) list: List,
    pub(crate) path: String,
    pub(crate) rows: Vec<Row>,
}

impl View {
    pub(crate) fn new(list: List, filters: &str, mut rows: Vec<Row>) -> Self {
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        Self { list, path: format!("{}{filters}", list.path()), rows }
    }

    /// A list of numbered rows.
    pub(crate) fn numbered(list: List, numbers: &[i64]) -> Self {
        Self::new(list, "", numbers.iter().map(|number| list.row(*number)).collect())
    }

    /// The rows in display order.
    pub(crate) fn displayed(&self, oldest_first: bool) -> Vec<&Row> {
        let rows = self.rows.iter();
        if oldest_first { rows.collect() } else { rows.rev().collect() }
    }

    /// The row with this cursor.
    pub(crate) fn row_of(&self, text: &str) -> Option<&Row> {
        self.rows.iter().find(|row| cursor(self.list, &row.key) == text)
    }

    /// The page that P1, P3, P9 and P10 require.
    pub(crate) fn expected(&self, ask: &PageRequest) -> Page {
        let display = self.displayed(ask.oldest_first);
        // Numbers of rows before the position, and before or at it, in display order.
        let comes_before = |row: &Row, position: &Key| {
            if ask.oldest_first { row.key < *position } else { row.key > *position }
        };
        let position = ask.position.as_ref();
        let before = position.map(|key| display.iter().filter(|row| comes_before(row, key)).count());
        let at_or_before = position
            .map(|key| display.iter().filter(|row| comes_before(row, key) || row.key == *key).count());
        let size = ask.size.unwrap_or(1000);
        let (start, end) = if ask.backwards {
            let end = before.unwrap_or(display.len());
            (end.saturating_sub(size), end)
        } else {
            let start = at_or_before.unwrap_or(0);
            (start, start.saturating_add(size).min(display.len()))
        };
        let edges: Vec<_> =
            display[start..end].iter().map(|row| (cursor(self.list, &row.key), row.node.clone())).collect();
        Page::new(edges, end < display.len(), start > 0)
    }

    /// Gets a page and asserts that it is the expected one.
    pub(crate) async fn get(&self, mesh: &MeshClient, ask: &PageRequest) -> Page {
        let page = self.answer(mesh, ask).await;
        assert_eq!(page, self.expected(ask), "{} {ask:?}", self.path);
        page
    }

    /// Gets a page.
    pub(crate) async fn answer(&self, mesh: &MeshClient, ask: &PageRequest) -> Page {
        let answer = mesh.get(&format!("{}{}", self.path, ask.query())).await;
        assert_eq!(answer.status, 200, "{} {ask:?}: {answer:?}", self.path);
        Page::from_answer(self.list, &answer)
    }
}

/// A received or expected page of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) edges: Vec<(String, Value)>,
    pub(crate) has_next: bool,
    pub(crate) has_previous: bool,
    pub(crate) start: String,
    pub(crate) end: String,
}

impl Page {
    pub(crate) fn new(edges: Vec<(String, Value)>, has_next: bool, has_previous: bool) -> Self {
        let cursor =
            |edge: Option<&(String, Value)>| edge.map(|(cursor, _)| cursor.clone()).unwrap_or_default();
        Self { start: cursor(edges.first()), end: cursor(edges.last()), edges, has_next, has_previous }
    }

    /// Reads a page from an answer; asserts that it has the contract's members and no others.
    pub(crate) fn from_answer(list: List, answer: &Answer) -> Self {
        let body = answer.json();
        let page = &body[list.member()];
        let text = |value: &Value| value.as_str().map(str::to_owned).expect("a text");
        let flag = |value: &Value| value.as_bool().expect("a flag");
        let edges = page["edges"].as_array().expect("edges");
        let edges = edges.iter().map(|edge| (text(&edge["cursor"]), edge["node"].clone())).collect();
        let info = &page["pageInfo"];
        let page = Self {
            edges,
            has_next: flag(&info["hasNextPage"]),
            has_previous: flag(&info["hasPreviousPage"]),
            start: text(&info["startCursor"]),
            end: text(&info["endCursor"]),
        };
        assert_eq!(body, page.as_json(list));
        page
    }

    pub(crate) fn as_json(&self, list: List) -> Value {
        let edges: Vec<_> =
            self.edges.iter().map(|(cursor, node)| json!({ "cursor": cursor, "node": node })).collect();
        json!({ list.member(): { "edges": edges, "pageInfo": {
            "hasNextPage": self.has_next, "hasPreviousPage": self.has_previous,
            "startCursor": self.start, "endCursor": self.end,
        } } })
    }

    pub(crate) fn cursors(&self) -> impl Iterator<Item = &str> {
        self.edges.iter().map(|(cursor, _)| cursor.as_str())
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Value> {
        self.edges.iter().map(|(_, node)| node)
    }
}
