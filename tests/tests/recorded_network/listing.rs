//! The expected pages of a paged list, with their cursors and flags (contract section 3).

use std::ops::Range;

use serde_json::{Value, json};

use crate::recorded_network::check::Check;

/// The rows of a list that match some filters, ascending by their sort key.
#[derive(Clone, PartialEq)]
pub(crate) struct Listing {
    /// Name of the list in cursors.
    pub(crate) list: &'static str,
    /// Name of the page's member in answers.
    pub(crate) field: &'static str,
    /// Sort key and node of each row.
    pub(crate) rows: Vec<(Vec<String>, Value)>,
}

impl Listing {
    /// The list with the rows whose node passes.
    pub(crate) fn filtered(&self, passes: impl Fn(&Value) -> bool) -> Self {
        let rows = self.rows.iter().filter(|(_, node)| passes(node)).cloned().collect();
        Self { rows, ..*self }
    }

    /// Compares the answer that contains all rows in one page.
    pub(crate) async fn compare(&self, check: &mut Check<'_>, path: &str) {
        check.same(path, &self.page(true, 0..self.rows.len()), self.rows.len()).await;
    }

    /// Walks through pages of a size, in both display orders and from both ends, and past the last page.
    pub(crate) async fn walk(&self, check: &mut Check<'_>, path: &str, size: usize) {
        let oldest_first = with(path, "pagination.newestFirst=false");
        for (newest_first, path) in [(true, path), (false, oldest_first.as_str())] {
            self.walk_forward(check, path, newest_first, size).await;
            self.walk_backward(check, path, newest_first, size).await;
        }
    }

    async fn walk_forward(&self, check: &mut Check<'_>, path: &str, newest_first: bool, size: usize) {
        let path = with(path, &format!("pagination.first={size}"));
        let (mut at, mut path_of_page) = (0, path.clone());
        loop {
            let page = at..self.rows.len().min(at + size);
            check.same(&path_of_page, &self.page(newest_first, page.clone()), page.len()).await;
            if page.is_empty() {
                return;
            }
            let after = format!("pagination.after={}", self.cursor(newest_first, page.end - 1));
            (at, path_of_page) = (page.end, with(&path, &after));
        }
    }

    async fn walk_backward(&self, check: &mut Check<'_>, path: &str, newest_first: bool, size: usize) {
        let path = with(path, &format!("pagination.last={size}"));
        let (mut at, mut path_of_page) = (self.rows.len(), path.clone());
        loop {
            let page = at.saturating_sub(size)..at;
            check.same(&path_of_page, &self.page(newest_first, page.clone()), page.len()).await;
            if page.is_empty() {
                return;
            }
            let before = format!("pagination.before={}", self.cursor(newest_first, page.start));
            (at, path_of_page) = (page.start, with(&path, &before));
        }
    }

    /// The expected answer with this part of the display order.
    fn page(&self, newest_first: bool, part: Range<usize>) -> Value {
        let edge = |at: usize| json!({"cursor": self.cursor(newest_first, at), "node": self.row(newest_first, at).1});
        let edges: Vec<Value> = part.clone().map(edge).collect();
        let cursor = |edge: Option<&Value>| edge.map_or_else(|| json!(""), |edge| edge["cursor"].clone());
        let page_info = json!({
            "startCursor": cursor(edges.first()),
            "endCursor": cursor(edges.last()),
            "hasNextPage": part.end < self.rows.len(),
            "hasPreviousPage": part.start > 0,
        });
        json!({self.field: {"edges": edges, "pageInfo": page_info}})
    }

    fn row(&self, newest_first: bool, at: usize) -> &(Vec<String>, Value) {
        &self.rows[if newest_first { self.rows.len() - 1 - at } else { at }]
    }

    fn cursor(&self, newest_first: bool, at: usize) -> String {
        let values: Vec<String> =
            self.row(newest_first, at).0.iter().map(|value| json!(value).to_string()).collect();
        base64url(format!("{{\"o\":\"{}\",\"k\":[{}]}}", self.list, values.join(",")).as_bytes())
    }
}

/// A path with one more query parameter.
fn with(path: &str, parameter: &str) -> String {
    format!("{path}{}{parameter}", if path.contains('?') { '&' } else { '?' })
}

/// Base64 without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().chain([&0; 2]).take(3).fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for letter in 0..=three.len() {
            text.push(char::from(ALPHABET[bits >> (18 - 6 * letter) & 63]));
        }
    }
    text
}

#[test]
fn the_cursor_is_that_of_the_contracts_worked_example() {
    let rows = vec![(vec!["1687255200000000000".to_owned()], Value::Null)];
    let listing = Listing { list: "candle", field: "candles", rows };
    assert_eq!(listing.cursor(true, 0), "eyJvIjoiY2FuZGxlIiwiayI6WyIxNjg3MjU1MjAwMDAwMDAwMDAwIl19");
}
