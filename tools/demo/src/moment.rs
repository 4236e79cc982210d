//! A point in time as the database stores it: whole microseconds since 1970, UTC.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01 00:00:00 UTC. Prints as PostgreSQL prints a `timestamptz` in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(i64);

impl Moment {
    /// The first moment of 1970, which stands for "not set" where a column may not be NULL.
    pub const UNSET: Moment = Moment(0);

    /// An unset time as real networks write it: the zero time of their clock (year 1) as 64-bit nanoseconds,
    /// which overflows.
    pub(crate) const ZERO_TIME: Moment = Moment(-6_795_364_578_871_346);

    /// A time from microseconds since 1970.
    #[must_use]
    pub const fn from_us(us: i64) -> Self {
        Moment(us)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub const fn us(self) -> i64 {
        self.0
    }

    /// The time so many microseconds later.
    #[must_use]
    pub const fn plus_us(self, us: i64) -> Self {
        Moment(self.0.saturating_add(us))
    }

    /// The time so many seconds later.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_us(seconds.saturating_mul(1_000_000))
    }

    /// Nanoseconds since 1970.
    pub(crate) fn ns(self) -> i64 {
        self.0.saturating_mul(1_000)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{}+00", time.strftime("%Y-%m-%d %H:%M:%S%.f"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_prints_as_postgres_prints_it() {
        let text = |us| Moment::from_us(us).to_string();
        assert_eq!(text(0), "1970-01-01 00:00:00+00");
        assert_eq!(text(1_687_257_080_120_400), "2023-06-20 10:31:20.1204+00");
        assert_eq!(text(1_687_257_080_000_007), "2023-06-20 10:31:20.000007+00");
        assert_eq!(Moment::ZERO_TIME.to_string(), "1754-08-30 22:43:41.128654+00");
        assert_eq!(text(-1), "1969-12-31 23:59:59.999999+00");
    }
}
