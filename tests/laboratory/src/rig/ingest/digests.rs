//! Compares the content of all tables of two databases.

use std::collections::BTreeMap;

use mesh::failure::{Failure, cannot};
use mesh_testbed::primary_key;
use tokio_postgres::Client;

use super::Report;

/// The tables with a key. The record of migrations has times of its own.
const TABLES: &str =
    "SELECT conrelid::regclass::text FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE contype = 'p' AND relkind = 'r' AND relnamespace = 'public'::regnamespace
        AND relname NOT LIKE '%migration%' AND relname NOT LIKE 'refinery%'";

/// The tables of two databases.
pub(super) struct Differences {
    tables: usize,
    /// Rows of the first database.
    pub(super) rows: i64,
    different: Vec<String>,
}

impl Differences {
    /// Compares two databases.
    pub(super) async fn between(found: &Client, expected: &Client) -> Result<Self, Failure> {
        let (found, expected) = (digests(found).await?, digests(expected).await?);
        let rows = found.values().map(|(rows, _)| rows).sum();
        let none = || (0, String::new());
        let different = expected.iter().filter_map(|(table, expected)| {
            let found = found.get(table).cloned().unwrap_or_else(none);
            let text = || {
                format!(
                    "{table}: {} rows, digest {}; expected {} rows, digest {}",
                    found.0, found.1, expected.0, expected.1
                )
            };
            (found != *expected).then(text)
        });
        Ok(Self { tables: expected.len(), rows, different: different.collect() })
    }

    /// Adds the bar that all tables are equal.
    pub(super) fn hold(&self, report: &mut Report) {
        let Self { tables, rows, different } = self;
        report.bar(
            format!(
                "of {tables} tables with {rows} rows those that differ from an undisturbed run: {}",
                different.len()
            ),
            different.is_empty() && *tables > 20 && *rows > 0,
        );
        report.messages.extend(different.iter().cloned());
    }
}

/// The number of rows and a digest of each table.
async fn digests(client: &Client) -> Result<BTreeMap<String, (i64, String)>, Failure> {
    let failed = |error: tokio_postgres::Error| cannot("compare tables", &error);
    let mut digests = BTreeMap::new();
    for row in client.query(TABLES, &[]).await.map_err(failed)? {
        let table: String = row.get(0);
        let key = primary_key(client, &table).await;
        let digest = format!(
            "SELECT count(*), md5(coalesce(string_agg(rows::text, E'\\n' ORDER BY {key}), '')) FROM {table} AS rows"
        );
        let row = client.query_one(&digest, &[]).await.map_err(failed)?;
        digests.insert(table, (row.get(0), row.get(1)));
    }
    Ok(digests)
}
