//! The schema of the store: its migrations, and the schema of a database.
//!
//! Migrations are the files of `migrations/`, embedded in the binary. A migration that changes an exportable table has a
//! name that begins with `exportable` (`V1__exportable_tables`); the number of the newest of them is the schema version
//! that history segments and export names carry. So the version can be read from the database alone.

use std::collections::BTreeMap;

use tokio_postgres::GenericClient;

use crate::error::StoreError;

/// A migration.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number.
    pub version: i32,
    /// The name of its file without the ending, as in `V1__exportable_tables`.
    pub name: &'static str,
    /// Its text.
    pub sql: &'static str,
}

/// The migrations of this build, oldest first. The build script lists them.
pub static MIGRATIONS: &[Migration] = &include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Beginning of the name of every migration that changes an exportable table.
const EXPORTABLE: &str = "exportable";

/// The state of a database's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaState {
    /// Number of the newest applied migration; 0 when the database has none.
    pub applied: i32,
    /// Number of the newest migration that this build knows.
    pub newest: i32,
    /// The schema version of exports and history segments: number of the newest applied migration that
    /// changed an exportable table; 0 when the database has no schema.
    pub exportable: i32,
    /// Migrations that this build needs and the database lacks, oldest first.
    pub missing: Vec<String>,
}

impl SchemaState {
    /// Whether this build can work with the database: no migration is missing. A database with newer
    /// migrations is accepted, because there is one while a new version rolls out.
    pub fn is_ready(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether a missing migration will change the exportable tables of an existing schema: the incomplete
    /// span of the history must be sealed before it (H7).
    pub fn will_change_exports(&self) -> bool {
        let changes =
            |name: &String| name.split_once("__").is_some_and(|(_, name)| name.starts_with(EXPORTABLE));
        self.applied > 0 && self.missing.iter().any(changes)
    }
}

/// Columns of a table in the order in which this build's migrations declare them; empty for an unknown table.
#[must_use]
pub fn columns(table: &str) -> Vec<String> {
    let names = declarations(table).filter_map(|line| line.split_whitespace().next());
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

/// The lines that declare the columns of a table.
pub(crate) fn declarations(table: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("CREATE TABLE {table} (\n");
    let found = MIGRATIONS.iter().find_map(|migration| migration.sql.split_once(&start));
    let declaration = found.map_or("", |(_, rest)| rest);
    let lines = declaration.lines().take_while(|line| !line.starts_with(')')).map(str::trim_start);
    // Constraints begin with a key word in capitals, comments with dashes.
    lines.filter(|line| line.trim_start_matches('"').starts_with(|first: char| first.is_ascii_lowercase()))
}

/// Reads the schema state of the connected database, which may have no schema at all.
///
/// # Errors
/// The statement fails.
pub async fn state(client: &impl GenericClient) -> Result<SchemaState, StoreError> {
    state_among(MIGRATIONS, client).await
}

/// Like [`state`], for a build with these migrations, oldest first.
///
/// # Errors
/// The statement fails.
pub async fn state_among(
    known: &[Migration],
    client: &impl GenericClient,
) -> Result<SchemaState, StoreError> {
    let step = StoreError::in_step("reading the schema version");
    let there = client
        .query_one("SELECT to_regclass('refinery_schema_history') IS NOT NULL", &[])
        .await
        .map_err(&step)?
        .get::<_, bool>(0);
    let mut applied: Vec<(i32, String)> = Vec::new();
    if there {
        let rows = client
            .query("SELECT version, name FROM refinery_schema_history ORDER BY version", &[])
            .await
            .map_err(&step)?;
        applied.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
    }
    Ok(state_of(known, &applied))
}

fn state_of(known: &[Migration], applied: &[(i32, String)]) -> SchemaState {
    let is_missing = |known: &&Migration| !applied.iter().any(|(version, _)| *version == known.version);
    let exportable = applied.iter().filter(|(_, name)| name.starts_with(EXPORTABLE));
    SchemaState {
        applied: applied.iter().map(|(version, _)| *version).max().unwrap_or(0),
        newest: known.last().map_or(0, |newest| newest.version),
        exportable: exportable.map(|(version, _)| *version).max().unwrap_or(0),
        missing: known.iter().filter(is_missing).map(|known| known.name.to_owned()).collect(),
    }
}

/// The columns of each table's primary key in their order, by table. The schema is that of `blocks`: another one may stand
/// before it in the search path, such as that of a user's name.
///
/// # Errors
/// The statement fails.
pub async fn primary_keys(client: &impl GenericClient) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
    let rows = client
        .query(
            "SELECT relation.relname::text, array_agg(attname::text ORDER BY place)
             FROM pg_index JOIN pg_class AS relation ON relation.oid = indrelid
                 CROSS JOIN LATERAL unnest(indkey::int2[]) WITH ORDINALITY AS key (number, place)
                 JOIN pg_attribute ON attrelid = indrelid AND attnum = key.number
             WHERE indisprimary AND relation.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('blocks'))
             GROUP BY 1",
            &[],
        )
        .await
        .map_err(StoreError::in_step("reading the keys of the schema"))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
