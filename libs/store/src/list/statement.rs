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

    static REWARDS: List = List {
        name: "reward",
        table: "rewards",
        key: &[
            KeyKind::Integer.column("epoch"),
            KeyKind::Text.column("market"),
            KeyKind::Text.column("kind"),
        ],
        columns: &["sum(amount)::text AS amount"],
        is_grouped: true,
        filters: &[Filter::AtLeast, Filter::AtMost, Filter::AnyOf("market"), Filter::Matches("tag = $::tag")],
        indexed: &["market"],
        plainly_indexed: &[],
        past: &[],
        past_bound: None,
    };

    fn statement(window: &Window, filters: [Option<Value>; 4]) -> Statement {
        REWARDS.statement(window, filters.into(), None)
    }

    fn window(position: Option<[&str; 3]>, descending: bool) -> Window {
        let request = PageRequest { newest_first: Some(descending), first: Some(10), ..Default::default() };
        let mut window =
            Window::read(&REWARDS, request, PageSizes { default: 1000, greatest: 5000 }).unwrap();
        window.position = position.map(|[epoch, market, kind]| {
            vec![Value::Integer(epoch.parse().unwrap()), text(market), text(kind)]
        });
        window
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn markets(ids: &[&str]) -> Option<Value> {
        Some(Value::Texts(ids.iter().map(|id| (*id).to_owned()).collect()))
    }

    #[test]
    fn a_statement_says_only_what_its_request_says() {
        let found = statement(&window(None, true), [None, None, markets(&[]), None]);
        assert_eq!(
            found.sql,
            "-- A page of the list reward, descending\n\
             SELECT head.height AS head_height, head.block_time AS head_time, false AS behind, \
             NULL AS epoch, NULL AS market, NULL AS kind, NULL AS amount\n\
             FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true\n\
             UNION ALL\n\
             SELECT NULL, NULL, NULL, page.* FROM \
             (SELECT epoch, market, kind, sum(amount)::text AS amount FROM rewards \
             GROUP BY epoch, market, kind ORDER BY epoch DESC, market DESC, kind DESC LIMIT $1) AS page\n"
        );
        assert_eq!(found.parameters, [Value::Integer(11)]);
    }

    #[test]
    fn a_fixed_column_is_neither_compared_nor_ordered_by() {
        let filters = [None, Some(Value::Integer(9)), markets(&["m"]), Some(text("t"))];
        let found = statement(&window(Some(["7", "m", "k"]), true), filters);
        assert_eq!(
            found.sql,
            "-- A page of the list reward by greatest key, market, tag, descending from a cursor\n\
             SELECT head.height AS head_height, head.block_time AS head_time, \
             EXISTS (SELECT FROM (SELECT FROM rewards \
             WHERE epoch <= $1 AND market = $2 AND tag = $3::tag AND (epoch, kind) >= ($4, $5) \
             ORDER BY epoch NULLS FIRST, kind LIMIT 1) AS nearest) AS behind, \
             NULL AS epoch, NULL AS market, NULL AS kind, NULL AS amount\n\
             FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true\n\
             UNION ALL\n\
             SELECT NULL, NULL, NULL, page.* FROM (SELECT epoch, market, kind, sum(amount)::text AS amount FROM rewards \
             WHERE market = $2 AND tag = $3::tag AND (epoch, kind) < ($4, $5) GROUP BY epoch, market, kind \
             ORDER BY epoch DESC NULLS LAST, kind DESC LIMIT $6) AS page\n"
        );
        let expected =
            [Value::Integer(9), text("m"), text("t"), Value::Integer(7), text("k"), Value::Integer(11)];
        assert_eq!(found.parameters, expected);
    }

    #[test]
    fn several_values_are_walked_one_by_one() {
        let found = statement(&window(None, false), [None, None, markets(&["m", "n"]), None]);
        let rows = "SELECT walk.* FROM (SELECT DISTINCT market FROM unnest($1::text[]) AS market) AS wanted, \
             LATERAL (SELECT epoch, market, kind, sum(amount)::text AS amount FROM rewards \
             WHERE rewards.market = wanted.market GROUP BY epoch, market, kind \
             ORDER BY epoch NULLS FIRST, market, kind LIMIT $2) AS walk \
             ORDER BY epoch NULLS FIRST, market, kind LIMIT $2";
        assert!(found.sql.contains(rows), "{}", found.sql);
    }

    #[test]
    fn a_value_in_either_of_two_columns_is_walked_twice() {
        static TRADES: List = List {
            name: "trade",
            table: "trades",
            key: &[KeyKind::Integer.column("time")],
            columns: &["size"],
            is_grouped: false,
            filters: &[Filter::Equal("market"), Filter::EitherOf(["buyer", "seller"])],
            indexed: &["buyer"],
            plainly_indexed: &[],
            past: &[],
            past_bound: None,
        };
        let window = Window { position: Some(vec![Value::Integer(4)]), ..window(None, true) };
        let found = TRADES.statement(&window, vec![None, Some(text("p"))], None);
        let page = "SELECT walk.* FROM (\
             (SELECT time, size FROM trades WHERE buyer = $1 AND time < $2 \
             ORDER BY time DESC NULLS LAST LIMIT $3) UNION ALL \
             (SELECT time, size FROM trades WHERE seller = $1 AND buyer <> $1 AND time < $2 \
             ORDER BY time DESC NULLS LAST LIMIT $3)) AS walk ORDER BY time DESC NULLS LAST LIMIT $3";
        assert!(found.sql.contains(page), "{}", found.sql);
        let behind = "(SELECT FROM trades WHERE buyer = $1 AND time >= $2 ORDER BY time NULLS FIRST LIMIT 1) \
             UNION ALL (SELECT FROM trades WHERE seller = $1 AND buyer <> $1 AND time >= $2 \
             ORDER BY time NULLS FIRST LIMIT 1)";
        assert!(found.sql.contains(behind), "{}", found.sql);
        assert_eq!(found.parameters, [text("p"), Value::Integer(4), Value::Integer(11)]);
    }

    #[test]
    fn a_page_as_of_a_block_has_another_source_and_begins_at_the_block() {
        static EVENTS: List = List {
            name: "event",
            table: "events",
            key: &[KeyKind::Integer.column("number")],
            columns: &["size"],
            is_grouped: false,
            filters: &[Filter::Equal("market"), Filter::AtMost, Filter::AnyOf("state")],
            indexed: &["state"],
            plainly_indexed: &[],
            past: &[
                PastSource {
                    by: &["market"],
                    of_version: &[],
                    sql: "SELECT * FROM of({market}) WHERE at <= {time}",
                },
                PastSource {
                    by: &[],
                    of_version: &["state"],
                    sql: "SELECT * FROM events WHERE at <= {time}",
                },
            ],
            past_bound: Some(|past| Value::Integer(past.reward_epoch)),
        };
        let (time, window) = (TimeUs(5), Window { limit: 1, ..window(None, true) });
        let past = Past { height: 4, time, is_sealed: false, delegation_epoch: 0, reward_epoch: 7 };
        let rows = |filters: [Option<Value>; 3]| {
            let Statement { sql, parameters } = EVENTS.statement(&window, filters.into(), Some(&past));
            (sql.split_once("page.* FROM ").unwrap().1, parameters)
        };
        let (sql, parameters) = rows([None, Some(Value::Integer(9)), None]);
        assert_eq!(
            sql,
            "(SELECT number, size FROM (SELECT * FROM events WHERE at <= $3::timestamptz) AS events \
             WHERE number <= $1 ORDER BY number DESC LIMIT $2) AS page\n"
        );
        assert_eq!(parameters, [Value::Integer(7), Value::Integer(2), Value::Time(time)]);
        let (sql, parameters) = rows([Some(text("m")), Some(Value::Integer(3)), None]);
        assert!(sql.contains("(SELECT * FROM of($1) WHERE at <= $4::timestamptz) AS events"), "{sql}");
        assert_eq!(parameters[..2], [text("m"), Value::Integer(3)], "the request's own limit is lower");
        let (sql, _) = rows([None, None, Some(Value::Texts(vec!["a".to_owned(), "b".to_owned()]))]);
        let found = "WHERE number <= $1 AND state = ANY ($2::text[]) ORDER BY number DESC LIMIT $3";
        assert!(sql.contains(found), "one walk without the mark of an index by state: {sql}");
    }

    #[test]
    fn requests_of_one_shape_share_a_text() {
        let of = |market: &str, epoch: &str| {
            let filters = [None, None, markets(&[market]), None];
            statement(&window(Some([epoch, market, "k"]), true), filters)
        };
        let (one, other) = (of("m", "1"), of("n", "2"));
        assert!(std::ptr::eq(one.sql, other.sql));
        assert_ne!(one.parameters, other.parameters);
        assert!(!std::ptr::eq(
            one.sql,
            statement(&window(None, true), [None, None, markets(&["m"]), None]).sql
        ));
    }
}
