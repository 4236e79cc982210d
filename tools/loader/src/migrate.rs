//! Migrates a database to the newest schema. refinery applies each migration of [`MIGRATIONS`] in a transaction of its
//! own; after the last one the service users get their grants.

use futures_util::future::BoxFuture;
use mesh_store::{
    NO_TIMEOUTS, connect, connect_with,
    schema::{MIGRATIONS, Migration, SchemaState, state, state_among},
};
use refinery::Runner;
use tokio_postgres::Client;

use crate::{LoadError, roles};

/// Key of the session lock that migrating processes take, so that several may start at once ("meshmigr").
const MIGRATION_LOCK: i64 = 0x6d65_7368_6d69_6772;

/// Migrations whose text was corrected after a database may have applied it: the number, and the checksum of the text of
/// then. A later migration corrects what it left behind.
const CORRECTED: [(i32, &str); 1] = [(13, "8457550076064620688")];

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
pub async fn migrate(url: &str) -> Result<Migrated, LoadError> {
    migrate_after(url, async |_| Ok(())).await
}

/// Like [`migrate`]; calls `before` ahead of a migration that changes the exportable tables of an existing
/// schema. Only the process that migrates calls it, and when it fails, nothing is migrated.
///
/// # Errors
/// As [`migrate`], and what `before` returns.
pub async fn migrate_after<E: From<LoadError>>(
    url: &str,
    before: impl AsyncFnOnce(&SchemaState) -> Result<(), E>,
) -> Result<Migrated, E> {
    migrate_with(MIGRATIONS, url, before).await
}

/// Refuses a database whose tables no service could read, or that takes any bytes for text.
///
/// # Errors
/// [`LoadError::Unsuitable`], or the statement fails.
pub async fn check_database(client: &Client) -> Result<(), LoadError> {
    let sql = "SELECT coalesce(current_schema(), ''), current_setting('server_encoding')";
    let row = client.query_one(sql, &[]).await.map_err(LoadError::in_step("checking the database"))?;
    let (schema, encoding): (&str, &str) = (row.get(0), row.get(1));
    let reason = if schema != "public" {
        let made = if schema.is_empty() { "nowhere".to_owned() } else { format!("in the schema {schema}") };
        format!(
            "the tables would be made {made}: see that the schema public is there and this user may create in it, and \
             add ?options=-csearch_path%3Dpublic to the URL"
        )
    } else if encoding != "UTF8" {
        format!("the database has the encoding {encoding}: create it with ENCODING 'UTF8' TEMPLATE template0")
    } else {
        return Ok(());
    };
    Err(LoadError::Unsuitable(reason))
}

async fn migrate_with<E: From<LoadError>>(
    migrations: &[Migration],
    url: &str,
    before: impl AsyncFnOnce(&SchemaState) -> Result<(), E>,
) -> Result<Migrated, E> {
    // A long statement of a process that was killed would keep its locks.
    let settings = format!("{NO_TIMEOUTS} -c client_connection_check_interval=1s");
    let mut client = connect_with(url, "mesh migrate", &settings).await.map_err(LoadError::from)?;
    let locked = client.execute("SELECT pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await;
    locked.map_err(LoadError::in_step("waiting for the migration lock"))?;
    // The lock ends with the session, so an early return releases it, too.
    check_database(&client).await?;
    let state = state_among(migrations, &client).await.map_err(LoadError::from)?;
    if state.will_change_exports() {
        before(&state).await?;
    }
    let mut result = migrate_locked(migrations, &mut client, state).await;
    if result.is_ok() {
        result = roles::grant(&client).await.and(result);
    }
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&MIGRATION_LOCK]).await;
    // The migration's own error comes first: it may have closed the connection.
    let migrated = result?;
    unlocked.map_err(LoadError::in_step("giving the migration lock back"))?;
    Ok(migrated)
}

/// Boxed, so that it is compiled once and not in every program.
fn migrate_locked<'a>(
    migrations: &'a [Migration],
    client: &'a mut Client,
    before: SchemaState,
) -> BoxFuture<'a, Result<Migrated, LoadError>> {
    Box::pin(async move {
        if before.is_ready() && before.applied > before.newest {
            return Ok(Migrated { applied: Vec::new(), state: before });
        }
        let runner = runner(migrations)?;
        if before.applied > 0 {
            accept_corrected(&runner, client).await?;
        }
        let report = runner.run_async(client).await.map_err(LoadError::Migrate)?;
        check_tables(client).await?;
        let applied = report.applied_migrations().iter().map(ToString::to_string).collect();
        Ok(Migrated { applied, state: state_among(migrations, client).await? })
    })
}

fn runner(migrations: &[Migration]) -> Result<Runner, LoadError> {
    let known = migrations.iter().map(|known| refinery::Migration::unapplied(known.name, known.sql));
    let known = known.collect::<Result<Vec<_>, _>>().map_err(LoadError::Migrate)?;
    Ok(Runner::new(&known))
}

/// Checks that the tables that this build's migrations create are there. No migration drops or renames one of them.
async fn check_tables(client: &Client) -> Result<(), LoadError> {
    let lines = MIGRATIONS.iter().flat_map(|migration| migration.sql.lines());
    let created: Vec<&str> =
        lines.filter_map(|line| line.strip_prefix("CREATE TABLE ")?.strip_suffix(" (")).collect();
    let sql = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL ORDER BY name";
    let dropped = client.query(sql, &[&created]).await;
    let dropped = dropped.map_err(LoadError::in_step("checking the tables of the migrations"))?;
    match dropped.iter().map(|row| row.get(0)).collect::<Vec<String>>() {
        tables if tables.is_empty() => Ok(()),
        tables => Err(LoadError::TablesDropped(tables)),
    }
}

/// Gives migrations that were applied with an earlier text the checksum of today's. refinery refuses other checksums.
async fn accept_corrected(runner: &Runner, client: &Client) -> Result<(), LoadError> {
    for (version, earlier) in CORRECTED {
        let known = runner.get_migrations().iter().find(|known| known.version() == version);
        let Some(checksum) = known.map(|known| known.checksum().to_string()) else { continue };
        let sql = "UPDATE refinery_schema_history SET checksum = $3 WHERE version = $1 AND checksum = $2";
        let accepted = client.execute(sql, &[&version, &earlier, &checksum]).await;
        accepted.map_err(LoadError::in_step("accepting a corrected migration"))?;
    }
    Ok(())
}

/// Describes the session that a migration of the database at `url` waits for.
///
/// # Errors
/// The server cannot be reached, or the statement fails.
pub async fn blocker(url: &str) -> Result<Option<String>, LoadError> {
    let client = connect(url, "mesh schema check").await?;
    let row = client.query_opt(include_str!("../sql/migration_blocker.sql"), &[]).await;
    let row = row.map_err(LoadError::in_step("reading what the migration waits for"))?;
    Ok(row.map(|row| {
        let (pid, user, program): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        format!("session {pid} of the database (program {program:?}, user {user:?})")
    }))
}

/// Reads the schema state of the database at `url`.
///
/// # Errors
/// The server cannot be reached, or the statement fails.
pub async fn pending(url: &str) -> Result<SchemaState, LoadError> {
    let client = connect(url, "mesh schema check").await?;
    Ok(state(&client).await?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use mesh_testbed::Database;

    fn with_one_more(name: &'static str) -> Vec<Migration> {
        with_another(name, "ALTER TABLE trades ADD COLUMN venue text")
    }

    /// This build's migrations and one more.
    fn with_another(name: &'static str, sql: &'static str) -> Vec<Migration> {
        let more = Migration { version: 900, name, sql };
        MIGRATIONS.iter().copied().chain([more]).collect()
    }

    #[tokio::test]
    async fn a_migration_whose_session_ends_is_the_reported_error() {
        let database = Database::fresh().await;
        let migrations = with_another("V900__ends", "SELECT pg_terminate_backend(pg_backend_pid())");
        let error =
            migrate_with(&migrations, database.url(), async |_| Ok::<_, LoadError>(())).await.unwrap_err();
        assert!(matches!(error, LoadError::Migrate { .. }), "{error}");
    }

    /// Whether the table still had the old schema when `before` was called; `None` when it was not called.
    async fn migrated(database: &Database, migrations: &[Migration]) -> Option<bool> {
        let has_venue = "SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'venue' AND attrelid = 'trades'::regclass)";
        let client = database.connect().await;
        let mut was_old = None;
        let before = async |state: &SchemaState| -> Result<(), LoadError> {
            assert!((1..900).contains(&state.exportable));
            was_old = Some(!client.query_one(has_venue, &[]).await.unwrap().get::<_, bool>(0));
            Ok(())
        };
        migrate_with(migrations, database.url(), before).await.unwrap();
        was_old
    }

    #[tokio::test]
    async fn something_is_done_before_a_migration_that_changes_exports_and_no_other() {
        let database = Database::fresh().await;
        assert_eq!(migrated(&database, &with_one_more("V900__exportable_venue")).await, Some(true));
        assert_eq!(migrated(&database, &with_one_more("V900__exportable_venue")).await, None, "it is done");
        let database = Database::fresh().await;
        assert_eq!(migrated(&database, &with_one_more("V900__venue")).await, None);
        // In an empty database there is nothing to seal.
        let empty = Database::empty().await;
        migrate_after(empty.url(), async |_| Err(LoadError::Busy)).await.unwrap();
    }

    #[tokio::test]
    async fn a_database_whose_tables_no_service_could_read_is_refused() {
        let database = Database::empty().await;
        for search_path in ["pg_catalog", "nowhere"] {
            let separator = if database.url().contains('?') { '&' } else { '?' };
            let url = format!("{}{separator}options=-csearch_path%3D{search_path}", database.url());
            let refused = migrate(&url).await;
            assert!(matches!(refused, Err(LoadError::Unsuitable { .. })), "{search_path}: {refused:?}");
        }
        migrate(database.url()).await.unwrap();
    }

    #[tokio::test]
    async fn what_fails_before_a_migration_leaves_the_schema_as_it_is() {
        let database = Database::fresh().await;
        let migrations = with_one_more("V900__exportable_venue");
        let error = migrate_with(&migrations, database.url(), async |_| Err(LoadError::Busy)).await;
        assert!(matches!(error, Err(LoadError::Busy)));
        assert_eq!(migrated(&database, &migrations).await, Some(true), "nor is the lock kept");
    }
}
