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
    use super::*;
    use crate::list::KeyKind;

    const LIST: List =
        List { name: "test", table: "test", key: &[KeyKind::Integer.column("id")], ..List::PLAIN };

    const SIZES: PageSizes = PageSizes { default: 1000, greatest: 5000 };

    fn read(request: PageRequest<'_>) -> Result<Window, Problem> {
        Window::read(&LIST, request, SIZES)
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
}
