//! Cursor pages (contract section 3): the part of a list that a page shows, and the page with its cursors.
//!
//! A list has a total sort key ([`ListKey`]). A request becomes a [`Window`]: from which position, in which
//! direction, how far. One statement reads `limit + 1` rows of the walk and whether rows lie behind its
//! start; [`Window::page`] makes a page of that.

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::URL_SAFE_NO_PAD},
};
use mesh_problem::Problem;
use serde::{Deserialize, Serialize};

/// Application number of an invalid pagination (P6).
const INVALID_PAGINATION: u32 = 10028;

/// Longest cursor, characters (P8).
const CURSOR_AT_MOST: usize = 1024;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The total sort key of a list: columns that never change for a row (P2).
pub trait ListKey: Ord + Sized {
    /// Name of the list inside its cursors.
    const LIST: &'static str;

    /// The values as text, times in nanoseconds.
    fn values(&self) -> Vec<String>;

    /// The key of these values; `None` when their number or a type is wrong.
    fn from_values(values: &[String]) -> Option<Self>;
}

/// The pagination of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageRequest<'a> {
    /// Number of rows from the start or after `after`.
    pub first: Option<i32>,
    /// The cursor before the first row.
    pub after: Option<&'a str>,
    /// Number of rows at the end or before `before`.
    pub last: Option<i32>,
    /// The cursor after the last row.
    pub before: Option<&'a str>,
    /// Display order; absent = newest first.
    pub newest_first: Option<bool>,
}

/// Page sizes (P4, P5).
#[derive(Debug, Clone, Copy)]
pub struct PageSizes {
    /// The size when the request names none.
    pub default: usize,
    /// The greatest size; larger requests are reduced to it.
    pub greatest: usize,
}

/// The part of a list that a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window<K> {
    /// Start of the walk, exclusive.
    position: Option<K>,
    /// Whether the walk goes with the display order.
    forward: bool,
    newest_first: bool,
    limit: usize,
}

/// A page in display order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Rows with their cursors.
    pub edges: Vec<(String, T)>,
    /// Whether a row follows the last one.
    pub has_next_page: bool,
    /// Whether a row precedes the first one.
    pub has_previous_page: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor<T> {
    o: T,
    k: Vec<String>,
}

impl<K: ListKey> Window<K> {
    /// Reads a request by P4-P6.
    ///
    /// # Errors
    /// 10028 for everything that P6 lists.
    pub fn read(request: PageRequest<'_>, sizes: PageSizes) -> Result<Self, Problem> {
        let PageRequest { first, after, last, before, newest_first } = request;
        let after = after.filter(|cursor| !cursor.is_empty());
        let before = before.filter(|cursor| !cursor.is_empty());
        let clash = |one: &str, other: &str| Err(invalid(&format!("{one} and {other} exclude each other")));
        match (first, after, last, before) {
            (_, Some(_), _, Some(_)) => return clash("after", "before"),
            (Some(_), _, Some(_), _) => return clash("first", "last"),
            (_, Some(_), Some(_), _) => return clash("after", "last"),
            (Some(_), _, _, Some(_)) => return clash("before", "first"),
            _ => {}
        }
        let forward = last.is_none() && before.is_none();
        let limit = match first.or(last) {
            None => sizes.default,
            Some(limit) => match usize::try_from(limit) {
                Ok(limit) if limit > 0 => limit,
                _ => {
                    return Err(
                        invalid("pagination limit must be greater than 0").with_inner(limit.to_string())
                    );
                }
            },
        };
        let position = match after.or(before) {
            None => None,
            Some(cursor) => Some(decode::<K>(cursor)?),
        };
        Ok(Self {
            position,
            forward,
            newest_first: newest_first.unwrap_or(true),
            limit: limit.min(sizes.greatest),
        })
    }

    /// Where the walk starts, exclusive; `None` = at the first row in its direction.
    pub fn position(&self) -> Option<&K> {
        self.position.as_ref()
    }

    /// Whether the walk goes towards lower keys.
    pub fn descending(&self) -> bool {
        self.forward == self.newest_first
    }

    /// Number of rows to read: one more than the page has, which shows whether there are more.
    pub fn rows(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX - 1) + 1
    }

    /// Makes the page of the rows read: up to [`Window::rows`] of them in any order, and whether a row lies
    /// at the position or on its other side.
    pub fn page<T>(&self, mut rows: Vec<(K, T)>, behind: bool) -> Page<T> {
        // A statement without a final ORDER BY guarantees no order; sorting sorted rows is cheap.
        if self.descending() {
            rows.sort_by(|one, other| other.0.cmp(&one.0));
        } else {
            rows.sort_by(|one, other| one.0.cmp(&other.0));
        }
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        if !self.forward {
            rows.reverse();
        }
        let edges = rows.into_iter().map(|(key, row)| (encode(&key), row)).collect();
        let (has_next_page, has_previous_page) = if self.forward { (more, behind) } else { (behind, more) };
        Page { edges, has_next_page, has_previous_page }
    }
}

/// The cursor of a key (P8).
fn encode<K: ListKey>(key: &K) -> String {
    let cursor = Cursor { o: K::LIST, k: key.values() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).expect("a cursor is plain text"))
}

fn decode<K: ListKey>(text: &str) -> Result<K, Problem> {
    let unreadable = || invalid("the cursor does not decode");
    if text.len() > CURSOR_AT_MOST {
        return Err(unreadable());
    }
    // The standard base64 alphabet is accepted, too; its `+` arrives as a space when the client did not
    // escape it.
    let text = text.replace(['+', ' '], "-").replace('/', "_");
    let bytes = LENIENT.decode(text).map_err(|_| unreadable())?;
    // serde reads a structure from a JSON array as well, which is no cursor.
    if bytes.first() != Some(&b'{') {
        return Err(unreadable());
    }
    let cursor: Cursor<String> = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    if cursor.o != K::LIST {
        return Err(invalid("the cursor belongs to another list"));
    }
    // PostgreSQL accepts no NUL in a text.
    if cursor.k.iter().any(|value| value.contains('\0')) {
        return Err(unreadable());
    }
    K::from_values(&cursor.k).ok_or_else(unreadable)
}

fn invalid(reason: &str) -> Problem {
    Problem::invalid(INVALID_PAGINATION, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct Key(i64);

    impl ListKey for Key {
        const LIST: &'static str = "test";

        fn values(&self) -> Vec<String> {
            vec![self.0.to_string()]
        }

        fn from_values(values: &[String]) -> Option<Self> {
            match values {
                [value] => value.parse().ok().map(Self),
                _ => None,
            }
        }
    }

    const SIZES: PageSizes = PageSizes { default: 1000, greatest: 5000 };

    /// The page of these keys, as a statement would read it.
    fn walk(keys: &[i64], window: &Window<Key>) -> Page<i64> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        if window.descending() {
            keys.reverse();
        }
        let beyond = |key: i64| match window.position() {
            None => true,
            Some(Key(position)) if window.descending() => key < *position,
            Some(Key(position)) => key > *position,
        };
        let rows = keys.iter().filter(|key| beyond(**key)).take(usize::try_from(window.rows()).unwrap());
        let behind = keys.iter().any(|key| !beyond(*key));
        window.page(rows.map(|key| (Key(*key), *key)).collect(), behind)
    }

    fn nodes(keys: &[i64], request: PageRequest<'_>) -> (Vec<i64>, bool, bool) {
        let page = walk(keys, &Window::read(request, SIZES).unwrap());
        (page.edges.into_iter().map(|(_, key)| key).collect(), page.has_next_page, page.has_previous_page)
    }

    fn refused(request: PageRequest<'_>) -> Problem {
        let problem = Window::<Key>::read(request, SIZES).unwrap_err();
        assert_eq!(problem.number(), 10028);
        problem
    }

    #[test]
    fn the_worked_table_of_the_contract() {
        let cursor = |key| encode(&Key(key));
        let all = [1, 2, 3, 4, 5, 6, 7];
        let without_5 = [1, 2, 3, 4, 6, 7];
        let (five, two, one, three, seven) = (cursor(5), cursor(2), cursor(1), cursor(3), cursor(7));
        let none = PageRequest::default();
        let first = |count| PageRequest { first: Some(count), ..none };
        let last = |count| PageRequest { last: Some(count), ..none };
        let after = |request, cursor| PageRequest { after: Some(cursor), ..request };
        let before = |request, cursor| PageRequest { before: Some(cursor), ..request };
        let oldest = |request| PageRequest { newest_first: Some(false), ..request };

        assert_eq!(nodes(&all, first(3)), (vec![7, 6, 5], true, false));
        assert_eq!(nodes(&all, after(first(3), &five)), (vec![4, 3, 2], true, true));
        assert_eq!(nodes(&all, after(first(3), &two)), (vec![1], false, true));
        assert_eq!(nodes(&all, after(first(3), &one)), (vec![], false, true));
        assert_eq!(nodes(&without_5, after(first(3), &five)), (vec![4, 3, 2], true, true));
        assert_eq!(nodes(&all, last(3)), (vec![3, 2, 1], false, true));
        assert_eq!(nodes(&all, before(last(2), &three)), (vec![5, 4], true, true));
        assert_eq!(nodes(&all, before(last(3), &five)), (vec![7, 6], true, false));
        assert_eq!(nodes(&all, before(last(3), &seven)), (vec![], true, false));
        assert_eq!(nodes(&all, first(7)), (vec![7, 6, 5, 4, 3, 2, 1], false, false));
        assert_eq!(nodes(&all, oldest(first(3))), (vec![1, 2, 3], true, false));
        assert_eq!(nodes(&all, oldest(before(last(3), &three))), (vec![1, 2], true, false));
        assert_eq!(nodes(&[], first(3)), (vec![], false, false));
    }

    #[test]
    fn what_p6_refuses() {
        let cursor = encode(&Key(3));
        let none = PageRequest::default();
        for limit in [0, -1, i32::MIN] {
            let problem = refused(PageRequest { first: Some(limit), ..none });
            assert_eq!(problem.details[0].message, "pagination limit must be greater than 0");
            refused(PageRequest { last: Some(limit), ..none });
        }
        refused(PageRequest { after: Some(&cursor), before: Some(&cursor), ..none });
        refused(PageRequest { first: Some(1), last: Some(1), ..none });
        refused(PageRequest { after: Some(&cursor), last: Some(1), ..none });
        refused(PageRequest { before: Some(&cursor), first: Some(1), ..none });
        let foreign = URL_SAFE_NO_PAD.encode(r#"{"o":"other","k":["3"]}"#);
        let wrong_type = URL_SAFE_NO_PAD.encode(r#"{"o":"test","k":["x"]}"#);
        let too_many = URL_SAFE_NO_PAD.encode(r#"{"o":"test","k":["3","4"]}"#);
        let nul = URL_SAFE_NO_PAD.encode(r#"{"o":"test","k":["\u0000"]}"#);
        let array = URL_SAFE_NO_PAD.encode(r#"["test",["3"]]"#);
        let long = "a".repeat(CURSOR_AT_MOST + 1);
        for cursor in ["?", "e30", "!!!!", &foreign, &wrong_type, &too_many, &nul, &array, &long] {
            refused(PageRequest { after: Some(cursor), ..none });
            refused(PageRequest { before: Some(cursor), ..none });
        }
    }

    #[test]
    fn an_empty_cursor_is_absent() {
        let window =
            Window::<Key>::read(PageRequest { after: Some(""), last: Some(2), ..Default::default() }, SIZES);
        assert_eq!(window.unwrap().position(), None);
    }

    #[test]
    fn sizes_are_filled_in_and_cut() {
        let cursor = encode(&Key(1));
        let rows = |request| Window::<Key>::read(request, SIZES).unwrap().rows();
        assert_eq!(rows(PageRequest::default()), 1001);
        assert_eq!(rows(PageRequest { before: Some(&cursor), ..Default::default() }), 1001);
        assert_eq!(rows(PageRequest { first: Some(i32::MAX), ..Default::default() }), 5001);
    }

    #[test]
    fn standard_alphabet_and_padding_are_taken() {
        let json = r#"{"o":"test","k":["31"]}"#;
        let padded = base64::engine::general_purpose::STANDARD.encode(json);
        assert!(padded.ends_with('='));
        let window =
            Window::<Key>::read(PageRequest { after: Some(&padded), ..Default::default() }, SIZES).unwrap();
        assert_eq!(window.position(), Some(&Key(31)));
    }

    #[test]
    fn the_cursor_of_the_worked_candle() {
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        struct Start(i64);
        impl ListKey for Start {
            const LIST: &'static str = "candle";
            fn values(&self) -> Vec<String> {
                vec![self.0.to_string()]
            }
            fn from_values(_: &[String]) -> Option<Self> {
                None
            }
        }
        assert_eq!(
            encode(&Start(1_687_255_200_000_000_000)),
            "eyJvIjoiY2FuZGxlIiwiayI6WyIxNjg3MjU1MjAwMDAwMDAwMDAwIl19"
        );
    }
}
