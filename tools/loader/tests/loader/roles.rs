//! The rights of the service users in a database: they may read all of it, and write only what is granted to
//! them.

use std::time::Duration;

use mesh_launcher::servers::{Durability, Postgres, find_postgres, start};
use mesh_loader::{
    migrate::migrate,
    roles::{USERS, create_logins},
};
use mesh_testbed::{Database, connect, enterable_folder};
use tokio_postgres::{Client, Config, NoTls, error::SqlState};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A database that is migrated by the test, not copied from the template, so that it has its own grants.
async fn database() -> Database {
    // The first copy of the template creates the users.
    drop(Database::fresh().await);
    let database = Database::empty().await;
    migrate(database.url()).await.unwrap();
    database
}

async fn log_in(database: &Database, user: &str) -> Client {
    let url = database.url_of(user);
    assert!(url.contains(&format!("//{user}:")), "{user} is no user of its own");
    connect(&url).await
}

async fn tables(owner: &Client) -> Vec<String> {
    let sql = "SELECT quote_ident(relname) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// The name of any column of a table.
async fn column(client: &Client, table: &str) -> String {
    let sql =
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum = 1";
    client.query_one(sql, &[&table]).await.unwrap().get(0)
}

/// Whether the server refuses a statement for lack of rights. Panics on any other error.
async fn is_refused(client: &Client, sql: &str) -> bool {
    match client.batch_execute(sql).await {
        Ok(()) => false,
        Err(error) => {
            let refused = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            assert!(refused, "{sql} fails for another reason: {error:?}");
            true
        }
    }
}

/// Statements that change rows of a table or the table itself.
async fn writes(client: &Client, table: &str) -> [String; 12] {
    let column = column(client, table).await;
    [
        format!("INSERT INTO {table} DEFAULT VALUES"),
        format!("INSERT INTO {table} SELECT * FROM {table}"),
        format!("UPDATE {table} SET {column} = DEFAULT WHERE false"),
        format!("DELETE FROM {table} WHERE false"),
        format!("TRUNCATE {table}"),
        format!("COPY {table} FROM STDIN"),
        format!("SELECT 1 FROM {table} FOR UPDATE"),
        format!("DO $do$ BEGIN LOCK TABLE {table} IN ROW EXCLUSIVE MODE; END $do$"),
        format!("ALTER TABLE {table} ADD COLUMN more text"),
        format!("ALTER TABLE {table} DISABLE TRIGGER ALL"),
        format!("CREATE INDEX ON {table} ((1))"),
        format!("DROP TABLE {table}"),
    ]
}

/// Expects that a user may read all tables, but write only its `own`.
async fn writes_only(database: &Database, user: &str, own: &[&str]) {
    let client = log_in(database, user).await;
    let tables = tables(&database.connect().await).await;
    assert!(tables.len() > 30, "{tables:?}");
    // One a line: other statements that change something or have effects outside the database.
    let mut forbidden: Vec<String> = include_str!("forbidden.sql").lines().map(str::to_owned).collect();
    for table in tables.iter().filter(|table| !own.contains(&table.as_str())) {
        client.query(&format!("SELECT * FROM {table} LIMIT 1"), &[]).await.unwrap();
        forbidden.extend(writes(&client, table).await);
    }
    for sql in forbidden {
        assert!(is_refused(&client, &sql).await, "{user} may {sql}");
    }
}

#[tokio::test]
async fn reading_users_cannot_write() {
    let database = database().await;
    writes_only(&database, "query", &[]).await;
    writes_only(&database, "node-info", &[]).await;
}

#[tokio::test]
async fn the_sealing_user_may_write_the_upgrade_flag_and_the_sealed_span_and_nothing_else() {
    let database = database().await;
    let client = log_in(&database, "export").await;
    let keep = "INSERT INTO node_state (upgrade_ready, upgrade_height, updated_at) VALUES (true, 7, now())";
    client.batch_execute(keep).await.unwrap();
    client.batch_execute("UPDATE node_state SET upgrade_ready = false").await.unwrap();
    client.batch_execute("INSERT INTO last_snapshot_span VALUES (true, 1, 7)").await.unwrap();
    client.batch_execute("UPDATE last_snapshot_span SET to_height = 8").await.unwrap();
    for sql in ["DELETE FROM node_state", "TRUNCATE node_state", "DROP TABLE last_snapshot_span"] {
        assert!(is_refused(&client, sql).await, "it may {sql}");
    }
    writes_only(&database, "export", &["node_state", "last_snapshot_span"]).await;
}

#[tokio::test]
async fn a_table_that_comes_later_can_be_read_and_not_written() {
    let database = database().await;
    let owner = database.connect().await;
    owner.batch_execute("CREATE TABLE later (n int); INSERT INTO later VALUES (7)").await.unwrap();
    for user in USERS {
        let client = log_in(&database, user).await;
        let read: i32 = client.query_one("SELECT n FROM later", &[]).await.unwrap().get(0);
        assert_eq!(read, 7);
        for sql in writes(&client, "later").await {
            assert!(is_refused(&client, &sql).await, "{user} may {sql}");
        }
    }
}

#[tokio::test]
async fn logins_without_the_password_are_refused() {
    let database = database().await;
    for user in USERS {
        let wrong = database.url_of(user).replacen(&format!("//{user}:"), &format!("//{user}:x"), 1);
        let refused = tokio_postgres::connect(&wrong, NoTls).await.err().unwrap();
        assert_eq!(refused.code(), Some(&SqlState::INVALID_PASSWORD), "{user}");
    }
}

/// As in the cluster of an operator, where the owner is no superuser. On its own server, because users
/// are shared by all databases of a server.
#[tokio::test]
async fn an_owner_who_is_no_superuser_grants_the_same() {
    let home = enterable_folder();
    let (folder, log) = (home.path().join("postgres"), home.path().join("postgres.log"));
    let server =
        Postgres::prepare(&find_postgres().unwrap(), &folder, &log, Durability::Throwaway).await.unwrap();
    let process = start(&server.spec(), || server.ready(READY_WITHIN)).await.unwrap();
    let database = server.database(&USERS).unwrap();
    create_logins(database.url(), database.passwords()).await.unwrap();
    let odd = r"it's \' odd";
    let old_rules = format!("{}?options=-cstandard_conforming_strings%3Doff", database.url());
    create_logins(&old_rules, &[("guest".to_owned(), odd.to_owned())]).await.unwrap();
    let mut guest: Config = database.url().parse().unwrap();
    drop(guest.user("guest").password(odd).connect(NoTls).await.unwrap());
    let superuser = connect(database.url()).await;
    superuser.batch_execute("CREATE ROLE landlord LOGIN PASSWORD 'landlord'").await.unwrap();
    superuser.batch_execute("CREATE DATABASE house OWNER landlord").await.unwrap();
    let there = database.url().rsplit_once('@').unwrap().1.replace("/mesh", "/house");
    migrate(&format!("postgres://landlord:landlord@{there}")).await.unwrap();
    for (user, password) in database.passwords() {
        let url = format!("postgres://{user}:{password}@{there}");
        let client = connect(&url).await;
        client.query("SELECT * FROM trades_candle_1_day", &[]).await.unwrap();
        assert!(is_refused(&client, "CREATE TEMPORARY TABLE more (n int)").await, "{user}");
        let name = "INSERT INTO chain SELECT * FROM chain";
        assert_eq!(is_refused(&client, name).await, user != "ingest", "{user} names the chain");
        let keep = "UPDATE node_state SET upgrade_ready = false";
        assert_eq!(is_refused(&client, keep).await, user != "export", "{user} keeps the flag");
    }
    process.stop().await.unwrap();
}
