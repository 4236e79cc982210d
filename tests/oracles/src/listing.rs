//! Pages of a list by section 3 of the contract: rules P1, P3, P4, P5, P8, P9 and P10.

use std::cmp::Ordering;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use prost_reflect::{Kind, MessageDescriptor};
use proto_msgs::v2::Pagination;
use serde_json::{Value, json};

/// Sizes of pages: without a size in the request, and the greatest one.
const SIZES: (usize, usize) = (1000, 5000);

/// The rows of a list in ascending order of their keys.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The member of the answer that has the rows.
    member: String,
    /// Whether it is a page with edges. Otherwise the rows have one order only, and are answered whole unless
    /// a page is requested; that is the form of accounts.
    has_edges: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a list.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name of its list in cursors.
    pub list: String,
    /// Its cursor.
    pub cursor: String,
    /// Its sort key: numbers, and texts that are compared by bytes.
    pub key: Vec<Value>,
    /// Its JSON in the answer.
    pub node: Value,
}

impl Row {
    /// A row of the list with this name in cursors.
    ///
    /// # Panics
    /// When the key is no array.
    pub fn new(list: &str, key: Value, node: Value) -> Self {
        let Value::Array(key) = key else { panic!("{key} is no key") };
        Self { list: list.to_owned(), cursor: cursor(list, &texts(&key)), key, node }
    }
}

/// The texts of a key in a cursor.
pub fn texts(key: &[Value]) -> Vec<String> {
    key.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
}

/// The cursor of a position in a list.
pub fn cursor(list: &str, key: &[impl AsRef<str>]) -> String {
    let key: Vec<&str> = key.iter().map(AsRef::as_ref).collect();
    URL_SAFE_NO_PAD.encode(format!(r#"{{"o":"{list}","k":{}}}"#, json!(key)))
}

/// A page as parameters of a query.
pub fn query(page: &Pagination) -> String {
    let number = |name: &str, size: Option<i32>| size.map(|size| format!("&pagination.{name}={size}"));
    let text =
        |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("&pagination.{name}={text}"));
    let parameters = [
        number("first", page.first),
        number("last", page.last),
        text("after", &page.after),
        text("before", &page.before),
        page.newest_first.map(|newest| format!("&pagination.newestFirst={newest}")),
    ];
    parameters.into_iter().flatten().collect()
}

/// The key of a cursor.
fn position(cursor: &str) -> Vec<String> {
    let json =
        URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|json| serde_json::from_slice::<Value>(&json).ok());
    let json = json.unwrap_or_else(|| panic!("{cursor} is no cursor"));
    let parts = json["k"].as_array().into_iter().flatten();
    parts.map(|part| part.as_str().unwrap_or_default().to_owned()).collect()
}

impl Listing {
    /// Rows as an operation with this reply gives them.
    ///
    /// # Panics
    /// When the reply has no rows.
    pub fn new(reply: &MessageDescriptor, rows: Vec<Row>) -> Self {
        let field = reply.get_field(1).unwrap_or_else(|| panic!("{} has no list", reply.name()));
        let is_page =
            |kind: Kind| kind.as_message().is_some_and(|page| page.get_field_by_name("edges").is_some());
        Self { member: field.json_name().to_owned(), has_edges: is_page(field.kind()), rows }
    }

    /// The same list with other rows.
    pub fn with_rows(&self, rows: impl IntoIterator<Item = Row>) -> Self {
        Self { member: self.member.clone(), has_edges: self.has_edges, rows: rows.into_iter().collect() }
    }

    /// The rows in display order.
    fn displayed(&self, page: &Pagination) -> Vec<&Row> {
        let rows = self.rows.iter();
        if self.has_edges && page.newest_first.unwrap_or(true) {
            rows.rev().collect()
        } else {
            rows.collect()
        }
    }

    /// The rows of a page, and whether rows follow and precede them.
    pub fn page(&self, page: &Pagination) -> (Vec<&Row>, [bool; 2]) {
        let mut display = self.displayed(page);
        let size =
            page.first.or(page.last).map_or(SIZES.0, |size| usize::try_from(size).unwrap_or(0).min(SIZES.1));
        let descending = self.has_edges && page.newest_first.unwrap_or(true);
        // Number of rows before the position, and at it, in display order.
        let count = |cursor: &str, up_to: Ordering| {
            let position = position(cursor);
            let order = |row: &Row| self.compare(row, &position);
            let order = |row: &Row| if descending { order(row).reverse() } else { order(row) };
            display.partition_point(|row| order(row) <= up_to)
        };
        let (start, end) = if page.last.is_some() || page.before.is_some() {
            let end = page.before.as_ref().map_or(display.len(), |cursor| count(cursor, Ordering::Less));
            (end.saturating_sub(size), end)
        } else {
            let start = page.after.as_ref().map_or(0, |cursor| count(cursor, Ordering::Equal));
            (start, (start + size).min(display.len()))
        };
        let more = [end < display.len(), start > 0];
        display.truncate(end);
        (display.split_off(start), more)
    }

    /// The answer to a request for a page.
    pub fn answer(&self, page: &Pagination) -> Value {
        let node = |row: &&Row| row.node.clone();
        if !self.has_edges && *page == Pagination::default() {
            return json!({ &self.member: self.rows.iter().map(|row| &row.node).collect::<Vec<_>>() });
        }
        let (rows, [has_next, has_previous]) = self.page(page);
        let cursor = |row: Option<&&Row>| row.map_or(json!(""), |row| json!(row.cursor));
        let info = json!({
            "startCursor": cursor(rows.first()), "endCursor": cursor(rows.last()),
            "hasNextPage": has_next, "hasPreviousPage": has_previous,
        });
        if !self.has_edges {
            return json!({ &self.member: rows.iter().map(node).collect::<Vec<_>>(), "pageInfo": info });
        }
        let edges: Vec<Value> =
            rows.iter().map(|row| json!({ "cursor": row.cursor, "node": row.node })).collect();
        json!({ &self.member: { "edges": edges, "pageInfo": info } })
    }

    /// The pages of all walks by this size: in both display orders, from both ends, and past the last row.
    pub fn walks(&self, size: usize) -> Vec<Pagination> {
        let size = i32::try_from(size.max(1)).ok();
        let orders = [(false, true), (false, false), (true, true), (true, false)];
        let mut pages = Vec::new();
        for (is_backward, newest_first) in orders {
            let start = Pagination { newest_first: Some(newest_first), ..Pagination::default() };
            let mut next = match is_backward {
                true => Pagination { last: size, ..start },
                false => Pagination { first: size, ..start },
            };
            loop {
                pages.push(next.clone());
                let (rows, _) = self.page(&next);
                let end = if is_backward { rows.first() } else { rows.last() };
                let Some(end) = end.map(|row| row.cursor.clone()) else { break };
                *(if is_backward { &mut next.before } else { &mut next.after }) = Some(end);
            }
        }
        pages
    }

    /// How a row lies to a position.
    fn compare(&self, row: &Row, position: &[String]) -> Ordering {
        let parts = row.key.iter().zip(position).enumerate();
        let orders = parts.map(|(number, (value, text))| match value.as_str() {
            None => value.as_i64().cmp(&text.parse().ok()),
            // The network's accounts come first.
            Some(party) if !self.has_edges && number == 0 => {
                (party != "network", party).cmp(&(text != "network", text))
            }
            Some(value) => value.cmp(text),
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}
