//! Values of filters and keys.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::TimeUs;

/// A value that a statement of a list is given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// An `int8`.
    Integer(i64),
    /// A `text`, or an enum by name.
    Text(String),
    /// A `timestamptz`.
    Time(TimeUs),
    /// A `text[]`.
    Texts(Vec<String>),
    /// An `int2`.
    Small(i16),
    /// An `int2[]`.
    Smalls(Vec<i16>),
}

/// The party of the network's own accounts.
const NETWORK: &str = "network";

impl Value {
    /// The form in which parties are compared where `network` comes first: it is empty, others have a mark.
    pub fn party(party: &str) -> Self {
        Self::Text(if party == NETWORK { String::new() } else { format!("+{party}") })
    }

    /// The party of that form.
    pub(super) fn party_of(form: &str) -> &str {
        form.strip_prefix('+').unwrap_or(NETWORK)
    }

    /// The type of several values in SQL; `None` for one value.
    pub(super) fn array_type(&self) -> Option<&'static str> {
        match self {
            Self::Texts(_) => Some("text[]"),
            Self::Smalls(_) => Some("int2[]"),
            Self::Integer(_) | Self::Text(_) | Self::Time(_) | Self::Small(_) => None,
        }
    }

    /// One value instead of a list of one, none instead of an empty list.
    pub(super) fn simplified(self) -> Option<Self> {
        match self {
            Self::Texts(mut texts) if texts.len() < 2 => texts.pop().map(Self::Text),
            Self::Smalls(mut numbers) if numbers.len() < 2 => numbers.pop().map(Self::Small),
            value => Some(value),
        }
    }

    /// The value as a literal of SQL with the type of the parameter, for `EXPLAIN … EXECUTE`, which takes no parameters.
    pub fn to_literal(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        match self {
            Self::Integer(number) => number.to_string(),
            Self::Small(number) => format!("{number}::int2"),
            Self::Smalls(numbers) => format!("ARRAY{numbers:?}::int2[]"),
            Self::Text(text) => format!("{}::text", quoted(text)),
            Self::Time(TimeUs(us)) => format!("to_timestamp({us}::numeric / 1000000)"),
            Self::Texts(texts) => {
                format!(
                    "ARRAY[{}]::text[]",
                    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Integer(value) => value.to_sql_checked(kind, out),
            Self::Text(value) => value.to_sql_checked(kind, out),
            Self::Time(value) => value.to_sql_checked(kind, out),
            Self::Texts(value) => value.to_sql_checked(kind, out),
            Self::Small(value) => value.to_sql_checked(kind, out),
            Self::Smalls(value) => value.to_sql_checked(kind, out),
        }
    }

    /// Every type: `to_sql` checks the type of the value at hand.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
