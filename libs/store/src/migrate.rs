//! Brings a database to the newest schema, and tells how far one is.
//!
//! Migrations are the files of `migrations/`, embedded in the binary and applied by refinery, each in a
//! transaction of its own. A migration that changes an exportable table has a name that begins with `exportable`
//! (`V1__exportable_tables`); the number of the newest of them is the schema version that history segments and
//! export names carry. The database itself knows it that way, without asking any build.

use tokio_postgres::{Client, GenericClient};

use crate::error::StoreError;
use crate::session;

mod embedded {
    #![allow(missing_docs, unreachable_pub)]
    refinery::embed_migrations!("migrations");
}

/// Key of the session lock that migrating processes take, so that several may start at once ("meshmigr").
const MIGRATION_LOCK: i64 = 0x6d65_7368_6d69_6772;

/// Beginning of the name of every migration that changes an exportable table.
const EXPORTABLE: &str = "exportable";

/// How far the schema of a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaState {
    /// Number of the newest applied migration; 0 when the database has none.
    pub applied: i32,
    /// Number of the newest migration that this build knows.
    pub newest: i32,
    /// The schema version of exports and history segments: number of the newest applied migration that changed
    /// an exportable table; 0 when the database has no schema.
    pub exportable: i32,
    /// Migrations that this build needs and the database lacks, oldest first.
    pub missing: Vec<String>,
}

impl SchemaState {
    /// Tells whether this build can work with the database: no migration is missing. A database that is
    /// further than the build is fine, as happens while a new version rolls out.
    pub fn is_ready(&self) -> bool {
        self.missing.is_empty()
    }
}

/// What [`migrate`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The migrations that were applied, oldest first; empty when there was nothing to do.
    pub applied: Vec<String>,
    /// How far the schema is now.
    pub state: SchemaState,
}

/// Applies the migrations that the database lacks. Several processes may do so at once: one works, the others
/// wait and then find nothing to do. A database that is further than this build is left alone.
///
/// The URL must lead to the server itself: a pooler that hands out connections per transaction breaks the lock.
pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
    let mut client = session::connect(url, "mesh migrate").await?;
    client
        .execute("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(StoreError::in_step("waiting for the migration lock"))?;
    // The lock ends with the session, so an early return gives it back too.
    let result = migrate_locked(&mut client).await;
    client
        .execute("SELECT pg_advisory_unlock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(StoreError::in_step("giving the migration lock back"))?;
    result
}

async fn migrate_locked(client: &mut Client) -> Result<Migrated, StoreError> {
    let before = state(client).await?;
    if before.is_ready() && before.applied > before.newest {
        return Ok(Migrated { applied: Vec::new(), state: before });
    }
    let report = embedded::migrations::runner()
        .run_async(client)
        .await
        .map_err(|source| StoreError::Migrate { source })?;
    let applied = report.applied_migrations().iter().map(ToString::to_string).collect();
    Ok(Migrated { applied, state: state(client).await? })
}

/// Tells how far the schema of the database at `url` is.
pub async fn pending(url: &str) -> Result<SchemaState, StoreError> {
    let client = session::connect(url, "mesh schema check").await?;
    state(&client).await
}

/// Tells how far the schema of the connected database is; a database without any schema is a valid answer.
pub async fn state(client: &impl GenericClient) -> Result<SchemaState, StoreError> {
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
    Ok(state_of(&applied))
}

fn state_of(applied: &[(i32, String)]) -> SchemaState {
    let runner = embedded::migrations::runner();
    let mut known: Vec<_> = runner.get_migrations().iter().collect();
    known.sort();
    let missing = known
        .iter()
        .filter(|known| !applied.iter().any(|(version, _)| *version == known.version()))
        .map(ToString::to_string)
        .collect();
    let exportable = applied.iter().filter(|(_, name)| name.starts_with(EXPORTABLE));
    SchemaState {
        applied: applied.iter().map(|(version, _)| *version).max().unwrap_or(0),
        newest: known.last().map_or(0, |newest| newest.version()),
        exportable: exportable.map(|(version, _)| *version).max().unwrap_or(0),
        missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(names: &[(i32, &str)]) -> Vec<(i32, String)> {
        names.iter().map(|(version, name)| (*version, (*name).to_owned())).collect()
    }

    #[test]
    fn an_empty_database_lacks_everything() {
        let state = state_of(&[]);
        assert_eq!((state.applied, state.exportable), (0, 0));
        assert_eq!(state.missing.first().map(String::as_str), Some("V1__exportable_tables"));
        assert_eq!(state.missing.len(), state.newest as usize);
        assert!(!state.is_ready());
    }

    #[test]
    fn the_version_of_exports_is_that_of_the_newest_migration_named_so() {
        let history =
            applied(&[(1, "exportable_tables"), (2, "state_tables"), (3, "exportable_x"), (4, "candles")]);
        let state = state_of(&history);
        assert_eq!((state.applied, state.exportable), (4, 3));
    }

    #[test]
    fn a_database_from_a_newer_build_is_ready() {
        let newest = state_of(&[]).newest;
        let history: Vec<_> = (1..=newest + 1).map(|version| (version, "any".to_owned())).collect();
        let state = state_of(&history);
        assert!(state.is_ready());
        assert_eq!(state.applied, newest + 1);
    }
}
