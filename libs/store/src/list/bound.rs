//! Where a walk starts, seen from the rows that pass the filters: a comparison of as few columns as possible,
//! so that an index walk begins at its first row.

use std::cmp::Ordering;

use super::{Filter, List, Value};

/// The rows ahead of the start of a walk, among those that pass the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bound {
    /// All of them.
    All,
    /// None of them: the walk starts at or behind the last one.
    None,
    /// Those whose first `columns` key columns, without those that a filter fixes, come after the position's.
    After {
        /// Number of compared columns.
        columns: usize,
        /// Whether rows that are equal in these columns are ahead as well.
        or_equal: bool,
    },
}

/// What the filters say about the key.
#[derive(Debug, Default)]
pub(super) struct KeyFilters<'a> {
    /// Per key column, the value that a filter fixes.
    pub(super) fixed: Vec<Option<&'a Value>>,
    /// Least value of the first column.
    pub(super) least: Option<&'a Value>,
    /// Greatest value of the first column.
    pub(super) greatest: Option<&'a Value>,
}

impl List {
    /// What these values of the filters say about the key.
    pub(super) fn key_filters<'a>(&self, filters: &'a [Option<Value>]) -> KeyFilters<'a> {
        let given =
            || self.filters.iter().zip(filters).filter_map(|(filter, value)| Some((filter, value.as_ref()?)));
        let find =
            |wanted: fn(&Filter) -> bool| given().find(|(filter, _)| wanted(filter)).map(|(_, value)| value);
        let fixed = |column: &str| {
            let is_fixed = |(filter, value): &(&Filter, &Value)| {
                filter.column() == Some(column) && value.array_type().is_none()
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

impl Bound {
    /// The bound of a position for a walk towards lower (`descending`) or higher keys.
    pub(super) fn new(filters: &KeyFilters<'_>, position: &[Value], descending: bool) -> Self {
        // How a value lies to the position's: `Greater` = ahead of it.
        let ahead = |value: &Value, of: &Value| match descending {
            true => of.cmp(value),
            false => value.cmp(of),
        };
        if let Some(first) = position.first() {
            let (near, far) = match descending {
                true => (filters.greatest, filters.least),
                false => (filters.least, filters.greatest),
            };
            if near.is_some_and(|near| ahead(near, first) == Ordering::Greater) {
                return Self::All;
            }
            if far.is_some_and(|far| ahead(far, first) == Ordering::Less) {
                return Self::None;
            }
        }
        let mut columns = 0;
        for (value, fixed) in position.iter().zip(&filters.fixed) {
            match fixed.map(|fixed| ahead(fixed, value)) {
                None => columns += 1,
                Some(Ordering::Equal) => {}
                Some(order) => return Self::compared(columns, order == Ordering::Greater),
            }
        }
        Self::compared(columns, false)
    }

    fn compared(columns: usize, or_equal: bool) -> Self {
        match (columns, or_equal) {
            (0, true) => Self::All,
            (0, false) => Self::None,
            _ => Self::After { columns, or_equal },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().copied().map(Value::Integer).collect()
    }

    /// All keys of three columns with values 0 to 3.
    fn keys() -> impl Iterator<Item = Vec<Value>> + Clone {
        (0..64).map(|number| key(&[number / 16, number / 4 % 4, number % 4]))
    }

    /// Whether a row is ahead by the bound, as the statement compares it.
    fn is_ahead(
        bound: Bound,
        filters: &KeyFilters<'_>,
        row: &[Value],
        position: &[Value],
        down: bool,
    ) -> bool {
        let Bound::After { columns, or_equal } = bound else { return bound == Bound::All };
        let free = |key: &[Value]| {
            let free = key.iter().zip(&filters.fixed).filter(|(_, fixed)| fixed.is_none());
            free.take(columns).map(|(value, _)| value.clone()).collect::<Vec<_>>()
        };
        let (row, position) = (free(row), free(position));
        let is_after = if down { row < position } else { row > position };
        is_after || or_equal && row == position
    }

    #[test]
    fn a_bound_divides_the_filtered_rows_as_the_whole_key_does() {
        let values = key(&[0, 1, 2, 3]);
        let choices = || std::iter::once(None).chain(values.iter().map(Some));
        for fixed_mask in 0..8 {
            for (least, greatest) in choices().flat_map(|least| choices().map(move |most| (least, most))) {
                let value =
                    |column: usize| (fixed_mask >> column & 1 == 1).then_some(&values[1 + column % 2]);
                let fixed = vec![value(0), value(1), value(2)];
                let filters = KeyFilters { fixed, least, greatest };
                let passes = |row: &Vec<Value>| {
                    row.iter()
                        .zip(&filters.fixed)
                        .all(|(value, fixed)| fixed.is_none_or(|fixed| fixed == value))
                        && least.is_none_or(|least| row[0] >= *least)
                        && greatest.is_none_or(|greatest| row[0] <= *greatest)
                };
                for (position, down) in
                    keys().flat_map(|position| [(position.clone(), true), (position, false)])
                {
                    let bound = Bound::new(&filters, &position, down);
                    for row in keys().filter(passes) {
                        let expected = if down { row < position } else { row > position };
                        let found = is_ahead(bound, &filters, &row, &position, down);
                        assert_eq!(found, expected, "{row:?} {position:?} {down} {filters:?} {bound:?}");
                    }
                }
            }
        }
    }
}
