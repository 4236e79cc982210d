//! Times of the database (whole microseconds) and of the API (nanoseconds), and their conversion.

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// Microseconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// A point in time, microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeUs(pub i64);

impl TimeUs {
    /// The latest stored time that is not after this one.
    pub fn at_or_before_ns(ns: i64) -> Self {
        Self(ns.div_euclid(1000))
    }

    /// The earliest stored time that is not before this one.
    pub fn at_or_after_ns(ns: i64) -> Self {
        Self(ns.div_euclid(1000) + i64::from(ns.rem_euclid(1000) != 0))
    }

    /// Nanoseconds since the Unix epoch; times that do not fit (before 1677, after 2262) at the nearest end.
    pub fn ns(self) -> i64 {
        self.0.saturating_mul(1000)
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
}
