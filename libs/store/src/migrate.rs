//! Migrates a database to the newest schema, and reads its schema state.
//!
//! Migrations are the files of `migrations/`, embedded in the binary and applied by refinery, each in a
//! transaction of its own; after the last one the service users get their grants. A migration that changes an
//! exportable table has a name that begins with `exportable` (`V1__exportable_tables`); the number of the
//! newest of them is the schema version that history segments and export names carry. So the version can be
//! read from the database alone.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use refinery::Runner;
use tokio_postgres::{Client, GenericClient};

use crate::{error::StoreError, roles, session};

mod embedded {
    #![allow(missing_docs, unreachable_pub)]
    refinery::embed_migrations!("migrations");
}

/// Key of the session lock that migrating processes take, so that several may start at once ("meshmigr").
const MIGRATION_LOCK: i64 = 0x6d65_7368_6d69_6772;

/// Migrations whose text was corrected after a database may have applied it: the number, and the checksum of the text of
/// then. A later migration corrects what it left behind.
const CORRECTED: [(i32, &str); 1] = [(13, "8457550076064620688")];

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

/// The text of all migrations of this build.
static SCRIPTS: LazyLock<String> = LazyLock::new(|| {
    let runner = embedded::migrations::runner();
    runner.get_migrations().iter().filter_map(|migration| migration.sql()).collect()
});

/// Columns of a table in the order in which this build's migrations declare them; empty for an unknown table.
#[must_use]
pub fn columns(table: &str) -> Vec<String> {
    let names = declarations(table).filter_map(|line| line.split_whitespace().next());
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

/// The lines that declare the columns of a table.
pub(crate) fn declarations(table: &str) -> impl Iterator<Item = &'static str> {
    let declaration = SCRIPTS.split_once(&format!("CREATE TABLE {table} (\n")).map_or("", |(_, rest)| rest);
    let lines = declaration.lines().take_while(|line| !line.starts_with(')')).map(str::trim_start);
    // Constraints begin with a key word in capitals, comments with dashes.
    lines.filter(|line| line.trim_start_matches('"').starts_with(|first: char| first.is_ascii_lowercase()))
}

/// The tables that this build's migrations create. No migration drops or renames one of them.
fn tables() -> Vec<&'static str> {
    let created = SCRIPTS.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.strip_suffix(" ("));
    created.collect()
}

/// The result of [`migrate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The migrations that were applied, oldest first; empty when there was nothing to do.
    pub applied: Vec<String>,
    /// The state of the schema afterwards.
    pub state: SchemaState,
}

/// Applies the migrations that the database lacks. When several processes do so at once, one migrates and the
/// others wait. A database with newer migrations than this build is not changed.
///
/// The URL must be that of the server itself: a pooler that assigns connections per transaction breaks the
/// lock.
///
/// # Errors
/// The server cannot be reached, a migration fails, the database has other migrations under the same numbers, or a
/// table of theirs was dropped.
pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
    migrate_after(url, async |_| Ok(())).await
}

/// Like [`migrate`]; calls `before` ahead of a migration that changes the exportable tables of an existing
/// schema. Only the process that migrates calls it, and when it fails, nothing is migrated.
///
/// # Errors
/// As [`migrate`], and what `before` returns.
pub async fn migrate_after<E: From<StoreError>>(
    url: &str,
    before: impl AsyncFnOnce(&SchemaState) -> Result<(), E>,
) -> Result<Migrated, E> {
    migrate_with(embedded::migrations::runner(), url, before).await
}

async fn migrate_with<E: From<StoreError>>(
    runner: Runner,
    url: &str,
    before: impl AsyncFnOnce(&SchemaState) -> Result<(), E>,
) -> Result<Migrated, E> {
    // A long statement of a process that was killed would keep its locks.
    let settings = format!("{} -c client_connection_check_interval=1s", session::NO_TIMEOUTS);
    let mut client = session::connect_with(url, "mesh migrate", &settings).await?;
    client
        .execute("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(StoreError::in_step("waiting for the migration lock"))?;
    // The lock ends with the session, so an early return releases it, too.
    let state = state_with(&runner, &client).await?;
    if state.will_change_exports() {
        before(&state).await?;
    }
    let mut result = migrate_locked(&runner, &mut client, state).await;
    if result.is_ok() {
        result = roles::grant(&client).await.and(result);
    }
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&MIGRATION_LOCK]).await;
    // The migration's own error comes first: it may have closed the connection.
    let migrated = result?;
    unlocked.map_err(StoreError::in_step("giving the migration lock back"))?;
    Ok(migrated)
}

/// Boxed, so that it is compiled once and not in every program.
fn migrate_locked<'a>(
    runner: &'a Runner,
    client: &'a mut Client,
    before: SchemaState,
) -> BoxFuture<'a, Result<Migrated, StoreError>> {
    Box::pin(async move {
        if before.is_ready() && before.applied > before.newest {
            return Ok(Migrated { applied: Vec::new(), state: before });
        }
        if before.applied > 0 {
            accept_corrected(runner, client).await?;
        }
        let report = runner.run_async(client).await.map_err(|source| StoreError::Migrate { source })?;
        check_tables(client).await?;
        let applied = report.applied_migrations().iter().map(ToString::to_string).collect();
        Ok(Migrated { applied, state: state_with(runner, client).await? })
    })
}

async fn check_tables(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL ORDER BY name";
    let dropped = client.query(sql, &[&tables()]).await;
    let dropped = dropped.map_err(StoreError::in_step("checking the tables of the migrations"))?;
    match dropped.iter().map(|row| row.get(0)).collect::<Vec<String>>() {
        tables if tables.is_empty() => Ok(()),
        tables => Err(StoreError::TablesDropped { tables }),
    }
}

/// Gives migrations that were applied with an earlier text the checksum of today's. refinery refuses other checksums.
async fn accept_corrected(runner: &Runner, client: &Client) -> Result<(), StoreError> {
    for (version, earlier) in CORRECTED {
        let known = runner.get_migrations().iter().find(|known| known.version() == version);
        let Some(checksum) = known.map(|known| known.checksum().to_string()) else { continue };
        let sql = "UPDATE refinery_schema_history SET checksum = $3 WHERE version = $1 AND checksum = $2";
        let accepted = client.execute(sql, &[&version, &earlier, &checksum]).await;
        accepted.map_err(StoreError::in_step("accepting a corrected migration"))?;
    }
    Ok(())
}

/// Describes the session that a migration of the database at `url` waits for.
///
/// # Errors
/// The server cannot be reached, or the statement fails.
pub async fn blocker(url: &str) -> Result<Option<String>, StoreError> {
    let client = session::connect(url, "mesh schema check").await?;
    let row = client.query_opt(include_str!("../sql/migration_blocker.sql"), &[]).await;
    let row = row.map_err(StoreError::in_step("reading what the migration waits for"))?;
    Ok(row.map(|row| {
        let (pid, user, program): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        format!("session {pid} of the database (program {program:?}, user {user:?})")
    }))
}

/// Reads the schema state of the database at `url`.
///
/// # Errors
/// The server cannot be reached, or the statement fails.
pub async fn pending(url: &str) -> Result<SchemaState, StoreError> {
    let client = session::connect(url, "mesh schema check").await?;
    state(&client).await
}

/// Reads the schema state of the connected database, which may have no schema at all.
///
/// # Errors
/// The statement fails.
pub async fn state(client: &impl GenericClient) -> Result<SchemaState, StoreError> {
    state_with(&embedded::migrations::runner(), client).await
}

async fn state_with(runner: &Runner, client: &impl GenericClient) -> Result<SchemaState, StoreError> {
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
    Ok(state_of(runner, &applied))
}

fn state_of(runner: &Runner, applied: &[(i32, String)]) -> SchemaState {
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
#[allow(clippy::unwrap_used)]
mod tests {
    use mesh_testbed::Database;
    use refinery::Migration;

    use super::*;

    fn state_of(applied: &[(i32, String)]) -> SchemaState {
        super::state_of(&embedded::migrations::runner(), applied)
    }

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

    fn with_one_more(name: &str) -> Runner {
        with_another(name, "ALTER TABLE trades ADD COLUMN venue text")
    }

    /// This build's migrations and one more.
    fn with_another(name: &str, sql: &str) -> Runner {
        let more = Migration::unapplied(name, sql).unwrap();
        let embedded = embedded::migrations::runner();
        let all: Vec<Migration> = embedded.get_migrations().iter().cloned().chain([more]).collect();
        Runner::new(&all)
    }

    #[tokio::test]
    async fn a_migration_whose_session_ends_is_the_reported_error() {
        let database = Database::fresh().await;
        let runner = with_another("V900__ends", "SELECT pg_terminate_backend(pg_backend_pid())");
        let error =
            migrate_with(runner, database.url(), async |_| Ok::<_, StoreError>(())).await.unwrap_err();
        assert!(matches!(error, StoreError::Migrate { .. }), "{error}");
    }

    /// Whether the table still had the old schema when `before` was called; `None` when it was not called.
    async fn migrated(database: &Database, runner: Runner) -> Option<bool> {
        let has_venue = "SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'venue' AND attrelid = 'trades'::regclass)";
        let client = database.connect().await;
        let mut was_old = None;
        let before = async |state: &SchemaState| -> Result<(), StoreError> {
            assert!((1..900).contains(&state.exportable));
            was_old = Some(!client.query_one(has_venue, &[]).await.unwrap().get::<_, bool>(0));
            Ok(())
        };
        migrate_with(runner, database.url(), before).await.unwrap();
        was_old
    }

    #[tokio::test]
    async fn something_is_done_before_a_migration_that_changes_exports_and_no_other() {
        let database = Database::fresh().await;
        assert_eq!(migrated(&database, with_one_more("V900__exportable_venue")).await, Some(true));
        assert_eq!(migrated(&database, with_one_more("V900__exportable_venue")).await, None, "it is done");
        let database = Database::fresh().await;
        assert_eq!(migrated(&database, with_one_more("V900__venue")).await, None);
        // In an empty database there is nothing to seal.
        let empty = Database::empty().await;
        migrate_after(empty.url(), async |_| Err(StoreError::Busy)).await.unwrap();
    }

    #[tokio::test]
    async fn what_fails_before_a_migration_leaves_the_schema_as_it_is() {
        let database = Database::fresh().await;
        let runner = || with_one_more("V900__exportable_venue");
        let error = migrate_with(runner(), database.url(), async |_| Err(StoreError::Busy)).await;
        assert!(matches!(error, Err(StoreError::Busy)));
        assert_eq!(migrated(&database, runner()).await, Some(true), "nor is the lock kept");
    }
}
