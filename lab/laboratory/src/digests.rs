//! Digests of all tables of a database.

use std::collections::BTreeMap;

use mesh::failure::{Failure, cannot};
use mesh_testbed::primary_key;
use tokio_postgres::Client;

const TABLES: &str = include_str!("../sql/keyed_tables.sql");

/// The number of rows and a digest of each table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digests(BTreeMap<String, (i64, String)>);

impl Digests {
    pub(crate) async fn read(client: &Client) -> Result<Self, Failure> {
        let failed = |error: tokio_postgres::Error| cannot("read tables", &error);
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
        Ok(Self(digests))
    }

    /// The number of tables.
    pub(crate) fn tables(&self) -> usize {
        self.0.len()
    }

    /// The number of rows of all tables.
    pub(crate) fn rows(&self) -> i64 {
        self.0.values().map(|(rows, _)| rows).sum()
    }

    /// The tables that differ from those of another database, in words.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<String> {
        let none = (0, String::new());
        let differs = |(table, expected): (&String, &(i64, String))| {
            let found = self.0.get(table).unwrap_or(&none);
            let text = |(rows, digest): &(i64, String)| format!("{rows} rows with digest {digest}");
            (found != expected).then(|| format!("{table}: {}, expected {}", text(found), text(expected)))
        };
        expected.0.iter().filter_map(differs).collect()
    }
}
