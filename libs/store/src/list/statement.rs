//! The statement that reads a page. Its text follows from the list's declaration and the shape of the
//! request (which filters are given, direction, start), never from values; PostgreSQL prepares it once per
//! connection with a generic plan.

use std::{collections::HashMap, fmt::Write as _, sync::LazyLock};

use parking_lot::Mutex;

use super::{
    Filter, List, Value, Window,
    bound::{Bound, KeyFilters},
};

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

/// What the text of a statement depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape {
    list: &'static str,
    filters: Vec<Given>,
    descending: bool,
    bound: Bound,
}

/// How a filter is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Given {
    No,
    OneValue,
    /// Several values of [`Filter::AnyOf`].
    Values,
}

impl List {
    /// The statement for a page: up to `limit + 1` rows of the walk, whether a row lies at its start or
    /// behind it, and the head. It returns at least one row; without a row of the list its columns are NULL.
    ///
    /// `filters` are the values of the list's filters in declared order; `None` and an empty
    /// [`Value::Texts`] = not given.
    pub fn statement(&'static self, window: &Window, filters: Vec<Option<Value>>) -> Statement {
        let filters: Vec<Option<Value>> = filters.into_iter().map(simplified).collect();
        let position = window.position.as_deref();
        let bound = position.map_or(Bound::All, |position| {
            Bound::new(&self.key_filters(&filters), position, window.descending)
        });
        let given = filters.iter().map(|value| match value {
            None => Given::No,
            Some(Value::Texts(_)) => Given::Values,
            Some(_) => Given::OneValue,
        });
        let shape = Shape { list: self.name, filters: given.collect(), descending: window.descending, bound };
        let compared = match (bound, position) {
            (Bound::After { columns, .. }, Some(position)) => {
                let fixed = self.key_filters(&filters).fixed;
                let free = position.iter().zip(fixed).filter(|(_, fixed)| fixed.is_none());
                free.take(columns).map(|(value, _)| value.clone()).collect()
            }
            _ => Vec::new(),
        };
        let mut parameters: Vec<Value> = filters.into_iter().flatten().collect();
        parameters.extend(compared);
        parameters.push(Value::Integer(window.rows()));
        let sql =
            *TEXTS.lock().entry(shape).or_insert_with_key(|shape| Text::new(self, shape).write().leak());
        Statement { sql, parameters }
    }

    fn key_filters<'a>(&self, filters: &'a [Option<Value>]) -> KeyFilters<'a> {
        let given =
            || self.filters.iter().zip(filters).filter_map(|(filter, value)| Some((filter, value.as_ref()?)));
        let find =
            |wanted: fn(&Filter) -> bool| given().find(|(filter, _)| wanted(filter)).map(|(_, value)| value);
        let fixed = |column: &str| {
            let is_fixed = |(filter, value): &(&Filter, &Value)| {
                filter.column() == Some(column) && !matches!(value, Value::Texts(_))
            };
            given().find(is_fixed).map(|(_, value)| value)
        };
        KeyFilters {
            fixed: self.key.iter().map(|column| fixed(column.name)).collect(),
            least: find(|filter| matches!(filter, Filter::AtLeast)),
            greatest: find(|filter| matches!(filter, Filter::AtMost)),
        }
    }
}

impl Filter {
    /// The column that it compares with one or several values.
    fn column(&self) -> Option<&'static str> {
        match self {
            Self::Equal(column) | Self::AnyOf(column) => Some(column),
            Self::AtLeast | Self::AtMost | Self::Matches(_) => None,
        }
    }
}

/// One value instead of a list of one, none instead of an empty list.
fn simplified(value: Option<Value>) -> Option<Value> {
    match value {
        Some(Value::Texts(mut texts)) if texts.len() < 2 => texts.pop().map(Value::Text),
        value => value,
    }
}

/// The rows that a part of the statement reads, relative to the walk's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ahead,
    Behind,
}

/// A statement under construction.
struct Text<'a> {
    list: &'static List,
    shape: &'a Shape,
    /// Per filter, its parameter: `$1`.
    parameters: Vec<Option<String>>,
    /// The parameters of the compared columns.
    position: Vec<String>,
    limit: String,
}

impl<'a> Text<'a> {
    fn new(list: &'static List, shape: &'a Shape) -> Self {
        let mut count = 0;
        let mut next = || {
            count += 1;
            format!("${count}")
        };
        let parameters = shape.filters.iter().map(|given| (*given != Given::No).then(&mut next)).collect();
        let columns = match shape.bound {
            Bound::After { columns, .. } => columns,
            Bound::All | Bound::None => 0,
        };
        let position = (0..columns).map(|_| next()).collect();
        Self { list, shape, parameters, position, limit: next() }
    }

    fn write(&self) -> String {
        let behind = match self.shape.bound {
            Bound::All => "false".to_owned(),
            Bound::None | Bound::After { .. } => {
                format!("EXISTS (SELECT FROM ({}) AS nearest)", self.rows(Side::Behind))
            }
        };
        format!(
            "-- {}\n\
             SELECT head.height AS head_height, head.block_time AS head_time, {behind} AS behind, page.*\n\
             FROM (VALUES (1)) AS always\n\
             LEFT JOIN last_block AS head ON true\n\
             LEFT JOIN ({}) AS page ON true\n",
            self.summary(),
            self.rows(Side::Ahead)
        )
    }

    /// What the statement reads, in words.
    fn summary(&self) -> String {
        let mut summary = format!("A page of the list {}", self.list.name);
        for (number, (filter, _)) in self.given().enumerate() {
            let what = match filter {
                Filter::Equal(column) | Filter::AnyOf(column) => column,
                Filter::AtLeast => "least key",
                Filter::AtMost => "greatest key",
                Filter::Matches(condition) => condition.split(' ').next().unwrap_or_default(),
            };
            let _ = write!(summary, "{}{what}", if number == 0 { " by " } else { ", " });
        }
        summary.push_str(if self.shape.descending { ", descending" } else { ", ascending" });
        if self.shape.bound != Bound::All {
            summary.push_str(" from a cursor");
        }
        summary
    }

    /// The filters that are given, with their parameters.
    fn given(&self) -> impl Iterator<Item = (&'static Filter, &str)> {
        let filters = self.list.filters.iter().zip(&self.parameters);
        filters.filter_map(|(filter, parameter)| Some((filter, parameter.as_deref()?)))
    }

    /// The columns that are filtered by several values, with their parameters.
    fn several(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let filters = self.list.filters.iter().zip(&self.shape.filters).zip(&self.parameters);
        filters.filter_map(|((filter, given), parameter)| match given {
            Given::Values => Some((filter.column()?, parameter.as_deref()?)),
            Given::No | Given::OneValue => None,
        })
    }

    /// The key columns that no filter fixes.
    fn free(&self) -> impl Iterator<Item = &'static str> {
        let fixed = |column: &str| {
            let mut filters = self.list.filters.iter().zip(&self.shape.filters);
            filters.any(|(filter, given)| filter.column() == Some(column) && *given == Given::OneValue)
        };
        self.list.key.iter().map(|column| column.name).filter(move |column| !fixed(column))
    }

    /// The rows on one side of the start: a page ahead of it, the nearest one behind it.
    ///
    /// When columns are filtered by several values, each combination of them is walked by itself and the
    /// walks are merged, so that rows of other values are not read.
    fn rows(&self, side: Side) -> String {
        let (select, limit) = match side {
            Side::Ahead => {
                let key = self.list.key.iter().map(|column| column.name);
                let columns: Vec<_> = key.chain(self.list.columns.iter().copied()).collect();
                (format!(" {}", columns.join(", ")), &*self.limit)
            }
            Side::Behind => (String::new(), "1"),
        };
        let order = self.order(side);
        let walk = format!(
            "SELECT{select} FROM {}{}{}{order} LIMIT {limit}",
            self.list.table,
            self.conditions(side),
            self.grouping(side)
        );
        let (columns, sources): (Vec<_>, Vec<_>) = self
            .several()
            .map(|(column, parameter)| (column, format!("unnest({parameter}::text[]) AS {column}")))
            .unzip();
        if columns.is_empty() {
            return walk;
        }
        let wanted = format!("SELECT DISTINCT {} FROM {}", columns.join(", "), sources.join(", "));
        match side {
            Side::Ahead => {
                format!(
                    "SELECT walk.* FROM ({wanted}) AS wanted, LATERAL ({walk}) AS walk{order} LIMIT {limit}"
                )
            }
            Side::Behind => format!("SELECT FROM ({wanted}) AS wanted, LATERAL ({walk}) AS walk"),
        }
    }

    fn conditions(&self, side: Side) -> String {
        let first = self.list.key.first().map_or("", |column| column.name);
        let mut conditions = Vec::new();
        for (filter, parameter) in self.given() {
            conditions.push(match filter {
                Filter::Equal(column) | Filter::AnyOf(column) => {
                    let is_several = self.several().any(|(several, _)| several == *column);
                    let table = self.list.table;
                    match is_several {
                        true => format!("{table}.{column} = wanted.{column}"),
                        false => format!("{column} = {parameter}"),
                    }
                }
                Filter::Matches(condition) => condition.replace('$', parameter),
                // An index walk begins at one bound: that of the start where there is one.
                Filter::AtLeast | Filter::AtMost if self.is_implied(filter, side) => continue,
                Filter::AtLeast => format!("{first} >= {parameter}"),
                Filter::AtMost => format!("{first} <= {parameter}"),
            });
        }
        match (self.shape.bound, side) {
            (Bound::None, Side::Ahead) => conditions.push("false".to_owned()),
            (Bound::After { columns, or_equal }, side) => {
                conditions.push(self.comparison(columns, or_equal, side));
            }
            (Bound::All | Bound::None, _) => {}
        }
        match &*conditions {
            [] => String::new(),
            _ => format!(" WHERE {}", conditions.join(" AND ")),
        }
    }

    /// Whether the rows on this side of the start fulfil a limit of the first key column anyway.
    fn is_implied(&self, filter: &Filter, side: Side) -> bool {
        let ascends_from_start = self.shape.descending == (side == Side::Behind);
        let has_start = matches!(self.shape.bound, Bound::After { .. });
        has_start && ascends_from_start == matches!(filter, Filter::AtLeast)
    }

    /// The comparison of the free columns with the start.
    fn comparison(&self, columns: usize, or_equal: bool, side: Side) -> String {
        let operator =
            match (self.shape.descending == (side == Side::Ahead), or_equal == (side == Side::Ahead)) {
                (true, true) => "<=",
                (true, false) => "<",
                (false, true) => ">=",
                (false, false) => ">",
            };
        let compared: Vec<_> = self.free().take(columns).collect();
        match (&*compared, &*self.position) {
            ([column], [value]) => format!("{column} {operator} {value}"),
            (compared, position) => {
                format!("({}) {operator} ({})", compared.join(", "), position.join(", "))
            }
        }
    }

    /// Rows of one key are one row of a grouped list; the nearest row behind the start needs no grouping.
    fn grouping(&self, side: Side) -> String {
        let key: Vec<_> = self.list.key.iter().map(|column| column.name).collect();
        match self.list.is_grouped && side == Side::Ahead {
            true => format!(" GROUP BY {}", key.join(", ")),
            false => String::new(),
        }
    }

    /// The order of a walk away from the start.
    fn order(&self, side: Side) -> String {
        let descends = self.shape.descending == (side == Side::Ahead);
        let mut given: Vec<_> = self.given().filter_map(|(filter, _)| filter.column()).collect();
        given.retain(|column| self.list.own_indexes.iter().any(|index| index.contains(column)));
        let is_own_index = self.list.own_indexes.iter().any(|index| **index == *given);
        let first = self.list.key.first().map(|column| column.name);
        let order = self.free().map(|column| {
            let mark = match (is_own_index && Some(column) == first, descends) {
                (true, true) => " DESC NULLS LAST",
                (true, false) => " NULLS FIRST",
                (false, true) => " DESC",
                (false, false) => "",
            };
            format!("{column}{mark}")
        });
        let order: Vec<_> = order.collect();
        if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyKind, PageRequest, PageSizes};

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
        own_indexes: &[&["market"]],
    };

    fn statement(window: &Window, filters: [Option<Value>; 4]) -> Statement {
        REWARDS.statement(window, filters.into())
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
             SELECT head.height AS head_height, head.block_time AS head_time, false AS behind, page.*\n\
             FROM (VALUES (1)) AS always\n\
             LEFT JOIN last_block AS head ON true\n\
             LEFT JOIN (SELECT epoch, market, kind, sum(amount)::text AS amount FROM rewards \
             GROUP BY epoch, market, kind ORDER BY epoch DESC, market DESC, kind DESC LIMIT $1) AS page ON true\n"
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
             ORDER BY epoch NULLS FIRST, kind LIMIT 1) AS nearest) AS behind, page.*\n\
             FROM (VALUES (1)) AS always\n\
             LEFT JOIN last_block AS head ON true\n\
             LEFT JOIN (SELECT epoch, market, kind, sum(amount)::text AS amount FROM rewards \
             WHERE market = $2 AND tag = $3::tag AND (epoch, kind) < ($4, $5) GROUP BY epoch, market, kind \
             ORDER BY epoch DESC NULLS LAST, kind DESC LIMIT $6) AS page ON true\n"
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
