//! The pagination of a request (P4-P6): from which position, in which direction, how many rows.

use std::cmp::Ordering;

use mesh_problem::Problem;

use super::{
    List, Value,
    cursor::{self, invalid},
};

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
pub struct Window {
    /// Start of the walk, exclusive: the key of a row; `None` = at the first row in its direction.
    pub(super) position: Option<Vec<Value>>,
    /// Whether the walk goes with the display order.
    pub(super) forward: bool,
    /// Whether the walk goes towards lower keys.
    pub(super) descending: bool,
    /// Most rows of the page.
    pub(super) limit: usize,
}

impl Window {
    /// Reads a request by P4-P6.
    ///
    /// # Errors
    /// 10028 for everything that P6 lists.
    pub fn read(list: &List, request: PageRequest<'_>, sizes: PageSizes) -> Result<Self, Problem> {
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
        let descending = forward == newest_first.unwrap_or(true);
        let limit = match first.or(last) {
            None => sizes.default,
            Some(limit) => match usize::try_from(limit) {
                Ok(limit) if limit > 0 => limit,
                _ => {
                    let problem = invalid("pagination limit must be greater than 0");
                    return Err(problem.with_inner(limit.to_string()));
                }
            },
        };
        let position = after.or(before).map(|text| cursor::decode(list, text, descending)).transpose()?;
        Ok(Self { position, forward, descending, limit: limit.min(sizes.greatest) })
    }

    /// Number of rows to read: one more than the page has, which shows whether there are more.
    pub(super) fn rows(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX - 1) + 1
    }

    /// Makes a page of the rows read: up to [`Window::rows`] of them, and whether a row lies at the position
    /// or behind it. Returns its rows in display order, and whether rows follow and precede them.
    pub(super) fn arrange<R>(
        &self,
        mut rows: Vec<R>,
        behind: bool,
        compare: impl Fn(&R, &R) -> Ordering,
    ) -> (Vec<R>, [bool; 2]) {
        // A statement without a final ORDER BY guarantees no order; sorting sorted rows is cheap.
        rows.sort_by(|one, other| {
            let order = compare(one, other);
            if self.descending { order.reverse() } else { order }
        });
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        if !self.forward {
            rows.reverse();
        }
        (rows, if self.forward { [more, behind] } else { [behind, more] })
    }

    /// Cuts a page to the rows at the start of its walk that have so many bytes in all, one at least. Returns
    /// whether rows that follow and that precede the page were removed.
    pub fn cut<R>(&self, rows: &mut Vec<R>, most: usize, bytes: impl Fn(&R) -> usize) -> [bool; 2] {
        let mut sum = 0;
        let mut fits = |row: &&R| {
            sum += bytes(row);
            sum <= most
        };
        let fitting = match self.forward {
            true => rows.iter().take_while(&mut fits).count(),
            false => rows.iter().rev().take_while(&mut fits).count(),
        };
        let removed = rows.len().saturating_sub(fitting.max(1));
        if self.forward {
            rows.truncate(rows.len() - removed);
        } else {
            rows.drain(..removed);
        }
        [self.forward && removed > 0, !self.forward && removed > 0]
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    use super::*;
    use crate::{
        TimeUs,
        list::{KeyColumn, KeyKind},
    };

    const LIST: List = List {
        name: "test",
        table: "test",
        key: &[KeyKind::Integer.column("id")],
        columns: &[],
        is_grouped: false,
        filters: &[],
        indexed: &[],
        plainly_indexed: &[],
        past: &[],
        past_bound: None,
    };

    const SIZES: PageSizes = PageSizes { default: 1000, greatest: 5000 };

    fn encode(id: i64) -> String {
        cursor::encode(&LIST, vec![id.to_string()])
    }

    fn read(request: PageRequest<'_>) -> Result<Window, Problem> {
        Window::read(&LIST, request, SIZES)
    }

    /// The page of these keys, as a statement would read it, and whether rows follow and precede it.
    fn page(keys: &[i64], request: PageRequest<'_>) -> (Vec<i64>, bool, bool) {
        let window = read(request).unwrap();
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        if window.descending {
            keys.reverse();
        }
        let is_ahead = |key: i64| match window.position.as_deref() {
            Some([Value::Integer(position)]) if window.descending => key < *position,
            Some([Value::Integer(position)]) => key > *position,
            _ => true,
        };
        let behind = keys.iter().any(|key| !is_ahead(*key));
        keys.retain(|key| is_ahead(*key));
        keys.truncate(usize::try_from(window.rows()).unwrap());
        let (rows, [next, previous]) = window.arrange(keys, behind, i64::cmp);
        (rows, next, previous)
    }

    fn refused(request: PageRequest<'_>) -> Problem {
        let problem = read(request).unwrap_err();
        assert_eq!(problem.number(), 10028);
        problem
    }

    #[test]
    fn the_worked_table_of_the_contract() {
        let cursor = encode;
        let all = [1, 2, 3, 4, 5, 6, 7];
        let without_5 = [1, 2, 3, 4, 6, 7];
        let (five, two, one, three, seven) = (cursor(5), cursor(2), cursor(1), cursor(3), cursor(7));
        let none = PageRequest::default();
        let first = |count| PageRequest { first: Some(count), ..none };
        let last = |count| PageRequest { last: Some(count), ..none };
        let after = |request, cursor| PageRequest { after: Some(cursor), ..request };
        let before = |request, cursor| PageRequest { before: Some(cursor), ..request };
        let oldest = |request| PageRequest { newest_first: Some(false), ..request };

        assert_eq!(page(&all, first(3)), (vec![7, 6, 5], true, false));
        assert_eq!(page(&all, after(first(3), &five)), (vec![4, 3, 2], true, true));
        assert_eq!(page(&all, after(first(3), &two)), (vec![1], false, true));
        assert_eq!(page(&all, after(first(3), &one)), (vec![], false, true));
        assert_eq!(page(&without_5, after(first(3), &five)), (vec![4, 3, 2], true, true));
        assert_eq!(page(&all, last(3)), (vec![3, 2, 1], false, true));
        assert_eq!(page(&all, before(last(2), &three)), (vec![5, 4], true, true));
        assert_eq!(page(&all, before(last(3), &five)), (vec![7, 6], true, false));
        assert_eq!(page(&all, before(last(3), &seven)), (vec![], true, false));
        assert_eq!(page(&all, first(7)), (vec![7, 6, 5, 4, 3, 2, 1], false, false));
        assert_eq!(page(&all, oldest(first(3))), (vec![1, 2, 3], true, false));
        assert_eq!(page(&all, oldest(before(last(3), &three))), (vec![1, 2], true, false));
        assert_eq!(page(&[], first(3)), (vec![], false, false));
    }

    #[test]
    fn what_p6_refuses() {
        let cursor = encode(3);
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
        let long = "a".repeat(1024 + 1);
        for cursor in ["?", "e30", "!!!!", &foreign, &wrong_type, &too_many, &nul, &array, &long] {
            refused(PageRequest { after: Some(cursor), ..none });
            refused(PageRequest { before: Some(cursor), ..none });
        }
    }

    #[test]
    fn a_page_is_cut_at_the_end_of_its_walk() {
        let first = read(PageRequest { first: Some(9), ..Default::default() }).unwrap();
        let last = read(PageRequest { last: Some(9), ..Default::default() }).unwrap();
        let cut = |window: &Window, sizes: &[usize]| {
            let mut rows = sizes.to_vec();
            (window.cut(&mut rows, 10, |size| *size), rows)
        };
        assert_eq!(cut(&first, &[4, 6, 1]), ([true, false], vec![4, 6]));
        assert_eq!(cut(&last, &[4, 6, 1]), ([false, true], vec![6, 1]));
        assert_eq!(cut(&first, &[4, 6]), ([false, false], vec![4, 6]));
        assert_eq!(cut(&first, &[11, 1]), ([true, false], vec![11]), "one at least");
        assert_eq!(cut(&last, &[1, 11]), ([false, true], vec![11]), "one at least");
        assert_eq!(cut(&first, &[]), ([false, false], vec![]));
    }

    #[test]
    fn an_empty_cursor_is_absent() {
        let window = read(PageRequest { after: Some(""), last: Some(2), ..Default::default() });
        assert_eq!(window.unwrap().position, None);
    }

    #[test]
    fn sizes_are_filled_in_and_cut() {
        let cursor = encode(1);
        let rows = |request| read(request).unwrap().rows();
        assert_eq!(rows(PageRequest::default()), 1001);
        assert_eq!(rows(PageRequest { before: Some(&cursor), ..Default::default() }), 1001);
        assert_eq!(rows(PageRequest { first: Some(i32::MAX), ..Default::default() }), 5001);
    }

    #[test]
    fn standard_alphabet_and_padding_are_taken() {
        let json = r#"{"o":"test","k":["31"]}"#;
        let padded = base64::engine::general_purpose::STANDARD.encode(json);
        assert!(padded.ends_with('='));
        let window = read(PageRequest { after: Some(&padded), ..Default::default() }).unwrap();
        assert_eq!(window.position, Some(vec![Value::Integer(31)]));
    }

    #[test]
    fn a_cursor_holds_nanoseconds_and_a_position_stored_times() {
        const KEY: &[KeyColumn] = &[KeyKind::Time.column("period_start")];
        let list = List { name: "candle", key: KEY, ..LIST };
        let text = cursor::encode(&list, vec!["1687255200000000000".to_owned()]);
        assert_eq!(text, "eyJvIjoiY2FuZGxlIiwiayI6WyIxNjg3MjU1MjAwMDAwMDAwMDAwIl19");
        let between = cursor::encode(&list, vec!["1500".to_owned()]);
        let position = |descending| cursor::decode(&list, &between, descending).unwrap();
        assert_eq!(position(true), [Value::Time(TimeUs(2))]);
        assert_eq!(position(false), [Value::Time(TimeUs(1))]);
    }
}
