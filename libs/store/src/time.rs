//! Times of the database (whole microseconds) and of the API (nanoseconds), and their conversion.

use std::fmt;

use bytes::BytesMut;
use jiff::Timestamp;
use mesh_problem::Problem;
use serde::{Deserialize, Serialize};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// Microseconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// A point in time, microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct TimeUs(pub i64);

impl TimeUs {
    /// The latest stored time that is not after this one.
    pub fn at_or_before_ns(ns: i64) -> Self {
        Self(ns.div_euclid(1000))
    }

    /// The earliest stored time that is not before this one.
    pub(crate) fn at_or_after_ns(ns: i64) -> Self {
        Self(ns.div_euclid(1000) + i64::from(ns.rem_euclid(1000) != 0))
    }

    /// A second later, which is after every event of a block of this time: events of a block are a microsecond apart.
    #[must_use]
    pub fn second_later(self) -> Self {
        self.plus_seconds(1)
    }

    /// The time so many microseconds later.
    #[must_use]
    pub const fn plus_us(self, us: i64) -> Self {
        Self(self.0.saturating_add(us))
    }

    /// The time so many seconds later.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_us(seconds.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the Unix epoch; times that do not fit (before 1677, after 2262) at the nearest end.
    pub fn ns(self) -> i64 {
        self.0.saturating_mul(1000)
    }
}

impl fmt::Display for TimeUs {
    /// As PostgreSQL prints a `timestamptz` in UTC: `2023-06-20 10:31:20.120456+00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{}+00", time.strftime("%Y-%m-%d %H:%M:%S%.f"))
    }
}

impl<'a> FromSql<'a> for TimeUs {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let since_2000 = <i64 as FromSql>::from_sql(kind, raw)?;
        Ok(Self(since_2000.saturating_add(POSTGRES_EPOCH_US)))
    }

    accepts!(TIMESTAMPTZ);
}

impl ToSql for TimeUs {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.saturating_sub(POSTGRES_EPOCH_US).to_sql(kind, out)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

/// A span of time as a request gives it, start inclusive, end exclusive (L1, contract 4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Nanoseconds since the Unix epoch; `None` is unbounded.
    pub start_ns: Option<i64>,
    /// Nanoseconds since the Unix epoch; `None` is unbounded.
    pub end_ns: Option<i64>,
}

impl TimeRange {
    /// Reads two parameters of these names; 0 and absent are unbounded.
    ///
    /// # Errors
    /// The application number `invalid` when a bound is negative, or the end before the start.
    pub fn read(names: [&str; 2], [start, end]: [Option<i64>; 2], invalid: u32) -> Result<Self, Problem> {
        let bounds = [start, end].map(|bound| bound.filter(|ns| *ns != 0));
        let refused = |reason, inner| Err(Problem::invalid(invalid, reason).with_inner(inner));
        for (name, bound) in names.into_iter().zip(bounds) {
            if let Some(ns) = bound.filter(|ns| *ns < 0) {
                return refused("a time is negative", format!("{name} {ns}"));
            }
        }
        match bounds {
            [Some(start), Some(end)] if end < start => {
                let inner = format!("{} {start}, {} {end}", names[0], names[1]);
                refused("the time range ends before it starts", inner)
            }
            [start_ns, end_ns] => Ok(Self { start_ns, end_ns }),
        }
    }

    /// The first stored time in the range, when it has a start.
    #[must_use]
    pub fn first(self) -> Option<TimeUs> {
        self.start_ns.map(TimeUs::at_or_after_ns)
    }

    /// The last stored time in the range, when it has an end.
    #[must_use]
    pub fn last(self) -> Option<TimeUs> {
        self.end_ns.map(|end| TimeUs(TimeUs::at_or_after_ns(end).0 - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_between_two_microseconds_has_a_neighbour_on_each_side() {
        assert_eq!(TimeUs::at_or_before_ns(1_999), TimeUs(1));
        assert_eq!(TimeUs::at_or_after_ns(1_001), TimeUs(2));
        assert_eq!(TimeUs::at_or_after_ns(2_000), TimeUs(2));
        assert_eq!(TimeUs::at_or_before_ns(-1), TimeUs(-1));
        assert_eq!(TimeUs::at_or_after_ns(-1), TimeUs(0));
    }

    #[test]
    fn a_time_prints_as_postgres_prints_it() {
        let text = |us| TimeUs(us).to_string();
        assert_eq!(text(0), "1970-01-01 00:00:00+00");
        assert_eq!(text(1_687_257_080_120_400), "2023-06-20 10:31:20.1204+00");
        assert_eq!(text(1_687_257_080_000_007), "2023-06-20 10:31:20.000007+00");
        assert_eq!(text(-6_795_364_578_871_346), "1754-08-30 22:43:41.128654+00");
        assert_eq!(text(-1), "1969-12-31 23:59:59.999999+00");
    }
}
