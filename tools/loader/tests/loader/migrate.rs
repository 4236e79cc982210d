//! Migrating on a real server: once, again, by several at a time, and against a database of another build.

use std::time::Duration;

use mesh_loader::{LoadError, migrate};
use mesh_store::error::StoreError;
use mesh_testbed::{Database, retry};
use proto_msgs::v2::Table;

mod embedded {
    //! The same files that the library embeds, to apply them one at a time.
    #![allow(missing_docs, unreachable_pub)]
    refinery::embed_migrations!("../../libs/store/migrations");
}

#[tokio::test]
async fn an_empty_database_gets_everything_once() {
    let database = Database::empty().await;
    let before = migrate::pending(database.url()).await.unwrap();
    assert_eq!((before.applied, before.exportable, before.is_ready()), (0, 0, false));

    let first = migrate::migrate(database.url()).await.unwrap();
    assert_eq!(first.applied, before.missing);
    assert_eq!(first.state.applied, first.state.newest);
    let exportable = embedded::migrations::runner();
    let exportable = exportable.get_migrations().iter().filter(|one| one.name().starts_with("exportable"));
    assert_eq!(Some(first.state.exportable), exportable.map(refinery::Migration::version).max());
    assert!(first.state.is_ready());

    let second = migrate::migrate(database.url()).await.unwrap();
    assert!(second.applied.is_empty());
    assert_eq!(second.state, first.state);
    assert_eq!(migrate::pending(database.url()).await.unwrap(), first.state);
}

#[tokio::test]
async fn time_limits_of_the_database_do_not_end_a_migration() {
    let database = Database::empty().await;
    let client = database.connect().await;
    for limit in ["statement_timeout = 1", "lock_timeout = 1", "idle_session_timeout = 1"] {
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {limit}', current_database()); END $$"
        );
        client.batch_execute(&set).await.unwrap();
    }
    assert!(migrate::migrate(database.url()).await.unwrap().state.is_ready());
}

#[tokio::test]
async fn of_several_starters_each_migration_is_applied_by_one() {
    let database = Database::empty().await;
    let starters = (0..6).map(|_| {
        let url = database.url().to_owned();
        tokio::spawn(async move { migrate::migrate(&url).await })
    });
    let mut applied = Vec::new();
    for starter in starters.collect::<Vec<_>>() {
        let migrated = starter.await.unwrap().unwrap();
        assert!(migrated.state.is_ready());
        applied.extend(migrated.applied);
    }
    assert_eq!(applied.len(), migrate::pending(database.url()).await.unwrap().newest as usize);
}

#[tokio::test]
async fn a_migration_that_waits_names_the_session_that_it_waits_for() {
    let database = Database::empty().await;
    let holder = database.connect().await;
    let lock = "SET application_name = 'holder'; SELECT pg_advisory_lock(7882833615131338610)";
    holder.batch_execute(lock).await.unwrap();
    let url = database.url().to_owned();
    let waiting = tokio::spawn(async move { migrate::migrate(&url).await });
    let blocker = retry(Duration::from_secs(30), async || {
        migrate::blocker(database.url()).await.unwrap().ok_or_else(|| "it does not wait".to_owned())
    });
    assert!(blocker.await.contains("program \"holder\""));
    drop(holder);
    waiting.await.unwrap().unwrap();
    assert_eq!(migrate::blocker(database.url()).await.unwrap(), None);
}

#[tokio::test]
async fn a_database_of_a_newer_build_is_ready_and_left_alone() {
    let (database, client) = Database::with_client().await;
    let newer = "INSERT INTO refinery_schema_history VALUES
        (1000, 'exportable_later', '2030-01-01T00:00:00Z', '1'), (1001, 'more', '2030-01-01T00:00:00Z', '1')";
    client.batch_execute(newer).await.unwrap();
    let migrated = migrate::migrate(database.url()).await.unwrap();
    assert!(migrated.applied.is_empty());
    assert!(migrated.state.is_ready());
    assert_eq!((migrated.state.applied, migrated.state.exportable), (1001, 1000));
}

#[tokio::test]
async fn a_database_with_other_migrations_is_refused() {
    let (database, client) = Database::with_client().await;
    let other = "UPDATE refinery_schema_history SET checksum = '1' WHERE version = 1";
    client.batch_execute(other).await.unwrap();
    let error = migrate::migrate(database.url()).await.unwrap_err();
    assert!(matches!(error, LoadError::Migrate { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unreachable_server_and_a_bad_url_are_different_errors() {
    let error = migrate::pending("postgresql://127.0.0.1:1/none").await.unwrap_err();
    assert!(matches!(error, LoadError::Store(StoreError::Connect { .. })), "{error:?}");
    let error = migrate::pending("http://127.0.0.1").await.unwrap_err();
    assert!(matches!(error, LoadError::Store(StoreError::Url { .. })), "{error:?}");
}

/// The version of exports is derived from the migrations' names, so a migration that changes an exportable
/// table must have a name that begins with `exportable`.
#[tokio::test]
async fn a_migration_that_changes_an_exportable_table_has_the_name_for_it() {
    let database = Database::empty().await;
    let mut client = database.connect().await;
    let tables: Vec<String> = Table::exportable().into_iter().map(Table::relation).collect();
    let mut before = String::new();
    let runner = embedded::migrations::runner();
    let mut migrations = runner.get_migrations().clone();
    migrations.sort_by_key(refinery::Migration::version);
    for migration in migrations {
        let target = refinery::Target::Version(migration.version());
        embedded::migrations::runner().set_target(target).run_async(&mut client).await.unwrap();
        let sql = include_str!("exportable_columns.sql");
        let after: String = client.query_one(sql, &[&tables]).await.unwrap().get(0);
        assert!(
            after == before || migration.name().starts_with("exportable"),
            "{migration} changes an exportable table, its name must begin with `exportable`"
        );
        before = after;
    }
    assert!(tables.iter().all(|table| before.contains(&format!("{table} "))), "{before}");
}

/// Autovacuum, a restore and, from PostgreSQL 17 on, CREATE INDEX run expressions of indexes without the schema in
/// the search path.
#[tokio::test]
async fn every_table_is_analyzed_and_indexed_without_a_search_path() {
    let (_database, client) = Database::with_client().await;
    let tables =
        "SELECT format('ANALYZE public.%I; REINDEX TABLE public.%I', tablename, tablename) FROM pg_tables
        WHERE schemaname = 'public'";
    let statements = client.query(tables, &[]).await.unwrap();
    assert!(statements.len() > 30, "{}", statements.len());
    client.batch_execute("SET search_path = ''").await.unwrap();
    for statement in statements {
        let sql: String = statement.get(0);
        client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {:?}", error.as_db_error()));
    }
}

/// The text of V13 that was on the main branch before PostgreSQL 17 was tried.
#[tokio::test]
async fn a_migration_that_was_corrected_later_is_accepted_with_its_earlier_text() {
    let (database, client) = Database::with_client().await;
    let earlier = include_str!("earlier_v13.sql");
    client.batch_execute(earlier).await.unwrap();
    let migrated = migrate::migrate(database.url()).await.unwrap();
    assert!(migrated.state.is_ready() && !migrated.applied.is_empty(), "{migrated:?}");
}
