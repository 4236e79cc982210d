//! A database for one test, dropped together with its [`Database`].

use mesh_launcher::database::Database as Access;
use mesh_loader::{
    migrate::{migrate, pending},
    roles,
};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::{janitor, postgres, unique};

/// Hash of the migrations of this build, part of the template's name.
const MIGRATIONS: &str = env!("MESH_TESTBED_MIGRATIONS");

/// Advisory lock: processes that share a server create the template one at a time ("testtmpl").
const TEMPLATE_LOCK: i64 = 0x7465_7374_746d_706c;

/// A database of its own for one test.
#[derive(Debug)]
pub struct Database {
    server: &'static str,
    name: String,
    users: Access,
}

impl Database {
    /// Creates a database with the newest schema and no rows; cheap, since it copies a template that is
    /// migrated once.
    pub async fn fresh() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let template = TEMPLATE.get_or_init(make_template).await;
        Self::create(&format!(" TEMPLATE \"{template}\"")).await
    }

    /// The same, with a connection.
    pub async fn with_client() -> (Self, Client) {
        let database = Self::fresh().await;
        let client = database.connect().await;
        (database, client)
    }

    /// Creates a database without tables.
    pub async fn empty() -> Self {
        Self::create("").await
    }

    /// Creates a database with the same tables and rows, which is quicker than writing many rows again. Closes all
    /// connections to this one.
    pub async fn copy(&self) -> Self {
        let closing = format!(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{}'",
            self.name
        );
        let closed = janitor::run(self.server, closing).await;
        closed.unwrap_or_else(|error| panic!("cannot close a database's connections: {}", reason(&error)));
        Self::create(&format!(" TEMPLATE \"{}\"", self.name)).await
    }

    /// Its address as the owner, with the password.
    pub fn url(&self) -> &str {
        self.users.url()
    }

    /// Its address as one of the store's users, with that user's password; for any other name the owner's
    /// address.
    pub fn url_of(&self, user: &str) -> String {
        self.users.url_of(user)
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a connection, which closes when the client is dropped.
    pub async fn connect(&self) -> Client {
        connect(self.url()).await
    }

    /// Drops it, with the connections to it.
    pub async fn drop_now(&self) {
        let dropped = janitor::run(self.server, janitor::drop_statement(&self.name)).await;
        dropped.unwrap_or_else(|error| panic!("cannot drop a test's database: {}", reason(&error)));
    }

    async fn create(how: &str) -> Self {
        let server = server_with_users().await;
        let name = format!("{}{}_{}", janitor::DATABASE_PREFIX, janitor::process_name(), unique());
        let created = janitor::run(server, format!("CREATE DATABASE \"{name}\"{how}")).await;
        created.unwrap_or_else(|error| panic!("cannot create a database for the test: {}", reason(&error)));
        let users = Access::new(&with_database(server, &name), passwords(server));
        Self { server, users, name }
    }

    /// The schema version that segments of this database and names of downloads carry.
    pub async fn schema_version(&self) -> i32 {
        pending(self.url()).await.expect("reading the schema's state works").exportable
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Best effort and not awaited; databases that remain are dropped by the next test process.
        drop(janitor::run(self.server, janitor::drop_statement(&self.name)));
    }
}

/// The server's address, after creating the store's users on it.
async fn server_with_users() -> &'static str {
    static KNOWN: OnceCell<()> = OnceCell::const_new();
    let server = postgres().await.url();
    let make = async {
        let known = roles::create_logins(server, &passwords(server)).await;
        known.unwrap_or_else(|error| panic!("cannot make users for the tests: {error}"));
    };
    KNOWN.get_or_init(|| make).await;
    server
}

/// The passwords of the store's users: the owner's password, which every process that shares the server has.
fn passwords(server: &str) -> Vec<(String, String)> {
    let config: Option<tokio_postgres::Config> = server.parse().ok();
    let password = config.and_then(|config| String::from_utf8(config.get_password()?.to_vec()).ok());
    let passwords = |password: String| roles::USERS.map(|user| (user.to_owned(), password.clone())).to_vec();
    password.map(passwords).unwrap_or_default()
}

/// Creates the template under a temporary name and renames it when it is complete.
async fn make_template() -> String {
    let template = format!("mesh_template_{MIGRATIONS}");
    let server = server_with_users().await;
    // The advisory lock is released when the connection closes.
    let client = connect(server).await;
    let make = async {
        client.execute("SELECT pg_advisory_lock($1)", &[&TEMPLATE_LOCK]).await?;
        if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&template]).await?.is_some() {
            return Ok(());
        }
        let making = format!("{template}_making");
        client.batch_execute(&janitor::drop_statement(&making)).await?;
        client.batch_execute(&format!("CREATE DATABASE \"{making}\"")).await?;
        if let Err(error) = migrate(&with_database(server, &making)).await {
            panic!(
                "cannot migrate a database for the tests: {error}: {:?}",
                std::error::Error::source(&error)
            );
        }
        // A database with connections cannot be renamed, and the migration's may take a moment to close.
        client
            .execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1",
                &[&making],
            )
            .await?;
        client.batch_execute(&format!("ALTER DATABASE \"{making}\" RENAME TO \"{template}\"")).await
    };
    let made: Result<(), tokio_postgres::Error> = make.await;
    made.unwrap_or_else(|error| panic!("cannot make the template database: {}", reason(&error)));
    template
}

/// Opens a connection, which closes when the client is dropped.
pub async fn connect(url: &str) -> Client {
    match tokio_postgres::connect(url, NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            client
        }
        Err(error) => panic!("cannot connect to the tests' database: {}", reason(&error)),
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |database_error| database_error.message().to_owned())
}

/// The same address with another database.
fn with_database(url: &str, database: &str) -> String {
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let host_begins = address.find("://").map_or(0, |at| at + 3);
    let host_ends = address[host_begins..].find('/').map_or(address.len(), |at| host_begins + at);
    let question = if parameters.is_empty() { "" } else { "?" };
    format!("{}/{database}{question}{parameters}", &address[..host_ends])
}

/// The columns of a table's primary key for `ORDER BY`, text in C collation.
pub async fn primary_key(client: &Client, table: &str) -> String {
    let columns = "SELECT string_agg(quote_ident(attname)
            || CASE WHEN attcollation <> 0 THEN ' COLLATE \"C\"' ELSE '' END,
            ', ' ORDER BY array_position(indkey::int2[], attnum))
        FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indisprimary AND indrelid = to_regclass($1)";
    client.query_one(columns, &[&table]).await.expect("reading a key works").get(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::eventually;

    #[test]
    fn the_database_of_an_address_is_replaced_and_nothing_else() {
        assert_eq!(with_database("postgres://a:b@h:1/old", "new"), "postgres://a:b@h:1/new");
        assert_eq!(with_database("postgres://a:b@h:1", "new"), "postgres://a:b@h:1/new");
        assert_eq!(
            with_database("postgres://h/old?sslmode=disable", "new"),
            "postgres://h/new?sslmode=disable"
        );
    }

    #[tokio::test]
    async fn a_copy_has_the_rows_and_is_apart() {
        let original = Database::empty().await;
        let connected = original.connect().await;
        connected.batch_execute("CREATE TABLE mine (n) AS VALUES (1), (2)").await.unwrap();
        let copy = original.copy().await;
        let connected = copy.connect().await;
        assert_eq!(connected.query("DELETE FROM mine RETURNING n", &[]).await.unwrap().len(), 2);
        assert_eq!(original.connect().await.query("SELECT n FROM mine", &[]).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_dropped_database_is_removed_despite_open_connections() {
        let database = Database::empty().await;
        let (name, connected) = (database.name().to_owned(), database.connect().await);
        drop(database);
        let admin = connect(postgres().await.url()).await;
        let exists = "SELECT 1 FROM pg_database WHERE datname = $1";
        let is_gone = async || admin.query_opt(exists, &[&name]).await.unwrap().is_none();
        eventually(Duration::from_secs(20), "the database is still there", is_gone).await;
        assert!(connected.simple_query("SELECT 1").await.is_err());
    }
}
