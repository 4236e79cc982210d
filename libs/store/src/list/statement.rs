//! The statement that reads a page. Its text follows from the list's declaration and the shape of the
//! request (which filters are given, direction, start), never from values; PostgreSQL prepares it once per
//! connection with a generic plan.

use std::{collections::HashMap, sync::LazyLock};

use parking_lot::Mutex;

use super::{
    Filter, List, Value, Window,
    bound::Bound,
    shape::{Given, Shape},
    text::Text,
};
use crate::Past;

/// The texts of the shapes that were asked for. A list has a few dozen shapes at most, so texts are never
/// removed.
static TEXTS: LazyLock<Mutex<HashMap<Shape, &'static str>>> = LazyLock::new(Mutex::default);

/// A statement and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text. Statements of one shape have the same one.
    pub sql: &'static str,
    /// The values of `$1`, `$2`, …
    pub parameters: Vec<Value>,
}

impl List {
    /// The statement for a page. Its first row is the head, and whether a row lies at the walk's start or
    /// behind it; after that up to `limit + 1` rows of the walk, in which these columns are NULL: they would
    /// cost as much as the others.
    ///
    /// `filters` are the values of the list's filters in declared order; `None` and an empty list of values = not
    /// given. `past`: the block that the page is as of.
    pub fn statement(
        &'static self,
        window: &Window,
        filters: Vec<Option<Value>>,
        past: Option<&Past>,
    ) -> Statement {
        let mut filters: Vec<Option<Value>> =
            filters.into_iter().map(|value| value.and_then(Value::simplified)).collect();
        if let (Some(past), Some(bound)) = (past, self.past_bound) {
            let at_most = self.filters.iter().position(|filter| matches!(filter, Filter::AtMost));
            if let Some(value) = at_most.and_then(|at_most| filters.get_mut(at_most)) {
                let bound = bound(past);
                *value = Some(value.take().map_or(bound.clone(), |value| value.min(bound)));
            }
        }
        let position = window.position.as_deref();
        let bound = position.map_or(Bound::All, |position| {
            Bound::new(&self.key_filters(&filters), position, window.descending)
        });
        let given = self.filters.iter().zip(&filters).map(|(filter, value)| match (filter, value) {
            (_, None) => Given::No,
            (Filter::Flag(_), Some(_)) => Given::Flag,
            (_, Some(value)) => value.array_type().map_or(Given::OneValue, Given::Values),
        });
        let shape = Shape {
            list: self.name,
            filters: given.collect(),
            descending: window.descending,
            bound,
            is_past: past.is_some(),
        };
        let compared = match (bound, position) {
            (Bound::After { columns, .. }, Some(position)) => {
                let fixed = self.key_filters(&filters).fixed;
                let free = position.iter().zip(fixed).filter(|(_, fixed)| fixed.is_none());
                free.take(columns).map(|(value, _)| value.clone()).collect()
            }
            _ => Vec::new(),
        };
        let valued = filters.into_iter().zip(&shape.filters).filter(|(_, given)| **given != Given::Flag);
        let mut parameters: Vec<Value> = valued.filter_map(|(value, _)| value).collect();
        parameters.extend(compared);
        parameters.push(Value::Integer(window.rows()));
        parameters.extend(past.map(|past| Value::Time(past.time)));
        let sql =
            *TEXTS.lock().entry(shape).or_insert_with_key(|shape| Text::new(self, shape).write().leak());
        Statement { sql, parameters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyKind, PageRequest, PageSizes, PastSource, TimeUs};

    static EVENTS: List = List {
        name: "event",
        table: "events",
        key: &[KeyKind::Integer.column("number")],
        columns: &["size"],
        filters: &[Filter::AnyOf("state")],
        indexed: &["state"],
        past: &[PastSource {
            by: &[],
            of_version: &["state"],
            sql: "SELECT * FROM events WHERE at <= {time}",
        }],
        ..List::PLAIN
    };

    /// A page of ten events in these states, newest first.
    fn statement(states: &[&str], position: Option<i64>, past: Option<&Past>) -> Statement {
        let request = PageRequest { newest_first: Some(true), first: Some(10), ..Default::default() };
        let sizes = PageSizes { default: 1000, greatest: 5000 };
        let mut window = Window::read(&EVENTS, request, sizes).unwrap();
        window.position = position.map(|number| vec![Value::Integer(number)]);
        let states = Value::Texts(states.iter().map(|state| (*state).to_owned()).collect());
        EVENTS.statement(&window, vec![Some(states)], past)
    }

    #[test]
    fn several_values_of_a_column_without_an_index_are_read_in_one_walk() {
        let past =
            Past { height: 4, time: TimeUs(5), is_sealed: false, delegation_epoch: 0, reward_epoch: 7 };
        let sql = statement(&["a", "b"], None, Some(&past)).sql;
        let found = "WHERE state = ANY ($1::text[]) ORDER BY number DESC LIMIT $2";
        assert!(sql.contains(found), "one walk without the mark of an index by state: {sql}");
    }

    #[test]
    fn requests_of_one_shape_share_a_text() {
        let (one, other) = (statement(&["a"], Some(1), None), statement(&["b"], Some(2), None));
        assert!(std::ptr::eq(one.sql, other.sql));
        assert_ne!(one.parameters, other.parameters);
        assert!(!std::ptr::eq(one.sql, statement(&["a"], None, None).sql));
    }
}
