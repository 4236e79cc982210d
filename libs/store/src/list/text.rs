//! The text of the statement for a shape of request.

use std::fmt::Write as _;

use super::{
    Filter, List,
    bound::Bound,
    shape::{Given, Shape},
};

/// The rows that a part of the statement reads, relative to the walk's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ahead,
    Behind,
}

/// A statement under construction.
pub(super) struct Text<'a> {
    list: &'static List,
    shape: &'a Shape,
    /// Per filter that is given, its parameter: `$1`; empty for a flag.
    parameters: Vec<Option<String>>,
    /// The parameters of the compared columns.
    position: Vec<String>,
    limit: String,
    /// The source of rows as of a block, with the parameters in it.
    past: Option<String>,
    /// [`super::PastSource::of_version`] of that source.
    of_version: &'static [&'static str],
}

impl<'a> Text<'a> {
    /// The statement of a list for a shape.
    pub(super) fn new(list: &'static List, shape: &'a Shape) -> Self {
        let mut count = 0;
        let mut next = || {
            count += 1;
            format!("${count}")
        };
        let parameters = shape.filters.iter().map(|given| match given {
            Given::No => None,
            Given::Flag => Some(String::new()),
            Given::OneValue | Given::Values(_) => Some(next()),
        });
        let parameters = parameters.collect();
        let columns = match shape.bound {
            Bound::After { columns, .. } => columns,
            Bound::All | Bound::None => 0,
        };
        let position = (0..columns).map(|_| next()).collect();
        let limit = next();
        let mut text = Self { list, shape, parameters, position, limit, past: None, of_version: &[] };
        if shape.is_past
            && let Some((source, sql)) = text.source(&next())
        {
            (text.past, text.of_version) = (Some(sql), source.of_version);
        }
        text
    }

    /// The text.
    pub(super) fn write(&self) -> String {
        let behind = match self.shape.bound {
            Bound::All => "false".to_owned(),
            Bound::None | Bound::After { .. } => {
                format!("EXISTS (SELECT FROM ({}) AS nearest)", self.rows(Side::Behind))
            }
        };
        let names = self.columns().map(|column| {
            let name = column.rsplit_once(" AS ").map_or(column, |(_, name)| name);
            format!(", NULL AS {name}")
        });
        format!(
            "-- {}\n\
             SELECT head.height AS head_height, head.block_time AS head_time, {behind} AS behind{}\n\
             FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true\n\
             UNION ALL\n\
             SELECT NULL, NULL, NULL, page.* FROM ({}) AS page\n",
            self.summary(),
            names.collect::<String>(),
            self.rows(Side::Ahead)
        )
    }

    /// What the statement reads, in words.
    fn summary(&self) -> String {
        let mut summary = format!("A page of the list {}", self.list.name);
        for (number, (filter, _)) in self.given().enumerate() {
            let what = match filter {
                Filter::Equal(column)
                | Filter::AnyOf(column)
                | Filter::Flag(column)
                | Filter::EitherOf([column, _]) => column,
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
        if self.shape.is_past {
            summary.push_str(" as of a block");
        }
        summary
    }

    /// The columns of a row: the key and the others.
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.list.key.iter().map(|column| column.name).chain(self.list.columns.iter().copied())
    }

    /// The filters that are given, with their parameters.
    fn given(&self) -> impl Iterator<Item = (&'static Filter, &str)> {
        let filters = self.list.filters.iter().zip(&self.parameters);
        filters.filter_map(|(filter, parameter)| Some((filter, parameter.as_deref()?)))
    }

    /// The columns that are filtered by several values, with their parameters and the types of these.
    fn several(&self) -> impl Iterator<Item = (&'static str, &str, &'static str)> {
        let filters = self.list.filters.iter().zip(&self.shape.filters).zip(&self.parameters);
        filters.filter_map(|((filter, given), parameter)| match given {
            Given::Values(kind) => Some((filter.column()?, parameter.as_deref()?, *kind)),
            Given::No | Given::OneValue | Given::Flag => None,
        })
    }

    /// Whether rows are found by a column, and not tested for it.
    fn is_found_by(&self, column: &str) -> bool {
        !self.of_version.contains(&column)
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
    /// walks are merged, so that rows of other values are not read; likewise when a value may be in either of
    /// two columns.
    fn rows(&self, side: Side) -> String {
        let limit = self.limit(side);
        if let Some(([one, other], parameter)) = self.either() {
            let of_one = self.walk(side, &[format!("{one} = {parameter}")]);
            // A row with the value in both columns is one row.
            let of_other = [format!("{other} = {parameter}"), format!("{one} <> {parameter}")];
            let walks = format!("({of_one}) UNION ALL ({})", self.walk(side, &of_other));
            return match side {
                Side::Ahead => {
                    format!("SELECT walk.* FROM ({walks}) AS walk{} LIMIT {limit}", self.order(side))
                }
                Side::Behind => walks,
            };
        }
        let walk = self.walk(side, &[]);
        let (columns, sources): (Vec<_>, Vec<_>) = self
            .several()
            .filter(|(column, ..)| self.is_found_by(column))
            .map(|(column, parameter, kind)| (column, format!("unnest({parameter}::{kind}) AS {column}")))
            .unzip();
        if columns.is_empty() {
            return walk;
        }
        let wanted = format!("SELECT DISTINCT {} FROM {}", columns.join(", "), sources.join(", "));
        match side {
            Side::Ahead => {
                let order = self.order(side);
                format!(
                    "SELECT walk.* FROM ({wanted}) AS wanted, LATERAL ({walk}) AS walk{order} LIMIT {limit}"
                )
            }
            Side::Behind => format!("SELECT FROM ({wanted}) AS wanted, LATERAL ({walk}) AS walk"),
        }
    }

    /// The rows on one side of the start that pass these conditions, too.
    fn walk(&self, side: Side, conditions: &[String]) -> String {
        let columns = match side {
            Side::Ahead => format!(" {}", self.columns().collect::<Vec<_>>().join(", ")),
            Side::Behind => String::new(),
        };
        format!(
            "SELECT{columns} FROM {}{}{}{} LIMIT {}",
            self.table(side),
            self.conditions(side, conditions),
            self.grouping(side),
            self.order(side),
            self.limit(side)
        )
    }

    /// The table, or what stands for it as of a block.
    fn table(&self, side: Side) -> String {
        let table = self.list.table;
        let past = |source: &String| format!("({}) AS {table}", source.replace("{order}", &self.order(side)));
        self.past.as_ref().map_or_else(|| table.to_owned(), past)
    }

    /// The source of rows as of a block, whose time is this parameter.
    fn source(&self, time: &str) -> Option<(&'static super::PastSource, String)> {
        let parameter = |column: &str| {
            let mut given = self.given();
            given.find_map(|(filter, text)| (filter.column() == Some(column)).then(|| text.to_owned()))
        };
        let is_given = |source: &&super::PastSource| source.by.iter().all(|by| parameter(by).is_some());
        let source = self.list.past.iter().find(is_given).or_else(|| self.list.past.last())?;
        let mut sql = source.sql.trim_end().replace("{time}", &format!("{time}::timestamptz"));
        for filter in self.list.filters {
            if let Some((column, text)) =
                filter.column().and_then(|column| Some((column, parameter(column)?)))
            {
                sql = sql.replace(&format!("{{{column}}}"), &text);
            }
        }
        Some((source, sql))
    }

    fn limit(&self, side: Side) -> &str {
        match side {
            Side::Ahead => &self.limit,
            Side::Behind => "1",
        }
    }

    /// The two columns of which one has a value, and its parameter.
    fn either(&self) -> Option<([&'static str; 2], &str)> {
        self.given().find_map(|(filter, parameter)| match filter {
            Filter::EitherOf(columns) => Some((*columns, parameter)),
            _ => None,
        })
    }

    fn conditions(&self, side: Side, more: &[String]) -> String {
        let first = self.list.key.first().map_or("", |column| column.name);
        let mut conditions = more.to_vec();
        for (filter, parameter) in self.given() {
            conditions.push(match filter {
                Filter::Equal(column) | Filter::AnyOf(column) => {
                    let table = self.list.table;
                    match self.several().find(|(several, ..)| several == column) {
                        Some(_) if self.is_found_by(column) => format!("{table}.{column} = wanted.{column}"),
                        Some((.., kind)) => format!("{column} = ANY ({parameter}::{kind})"),
                        None => format!("{column} = {parameter}"),
                    }
                }
                Filter::Flag(column) => (*column).to_owned(),
                Filter::EitherOf(_) => continue,
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
        given.retain(|column| self.list.indexed.contains(column) && self.is_found_by(column));
        let is_plain = given.is_empty() || self.list.plainly_indexed.contains(&&*given);
        let first = self.list.key.first().map(|column| column.name);
        let order = self.free().map(|column| {
            let mark = match (!is_plain && Some(column) == first, descends) {
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
