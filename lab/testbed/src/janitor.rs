//! The one connection that creates and drops databases.
//!
//! It runs on its own thread, because tests have a runtime each and a `Drop` cannot await. It also shows
//! that this process lives: the next process drops the databases of processes without such a connection.

use std::{sync::OnceLock, thread};

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, NoTls};

/// Every test database is named `mesh_test_<process>_<…>`.
pub(crate) const DATABASE_PREFIX: &str = "mesh_test_";

/// The janitor's connection has the application name `mesh-testbed <process>`.
const APPLICATION_NAME_PREFIX: &str = "mesh-testbed ";

type Outcome = Result<(), tokio_postgres::Error>;

struct QueuedStatement {
    statement: String,
    done: oneshot::Sender<Outcome>,
}

/// The name of this process in the names of its databases.
pub(crate) fn process_name() -> &'static str {
    static PROCESS_NAME: OnceLock<String> = OnceLock::new();
    PROCESS_NAME.get_or_init(crate::unique)
}

/// Runs a statement on the maintenance database at `url`, which must be the same in every call of one
/// process.
///
/// The statement is queued at once; the returned future waits for its result and need not be awaited.
pub(crate) fn run(url: &str, statement: String) -> impl Future<Output = Outcome> + use<> {
    static STATEMENTS: OnceLock<mpsc::UnboundedSender<QueuedStatement>> = OnceLock::new();
    let statements = STATEMENTS.get_or_init(|| {
        let (statements, inbox) = mpsc::unbounded_channel();
        let url = url.to_owned();
        let work = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(serve(&url, inbox)),
            Err(error) => panic!("no runtime for the connection to PostgreSQL: {error}"),
        };
        let started = thread::Builder::new().name("janitor".into()).spawn(work);
        started.unwrap_or_else(|error| panic!("no thread for the connection to PostgreSQL: {error}"));
        statements
    });
    let (done, outcome) = oneshot::channel();
    let sent = statements.send(QueuedStatement { statement, done }).is_ok();
    async move {
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => panic!("the connection to PostgreSQL ended (order taken: {sent})"),
        }
    }
}

async fn serve(url: &str, mut inbox: mpsc::UnboundedReceiver<QueuedStatement>) {
    let mut client = None;
    while let Some(QueuedStatement { statement, done }) = inbox.recv().await {
        let outcome = match usable(&mut client, url).await {
            Ok(client) => client.batch_execute(&statement).await,
            Err(error) => Err(error),
        };
        // The caller may have dropped the future.
        let _ = done.send(outcome);
    }
}

async fn usable<'a>(client: &'a mut Option<Client>, url: &str) -> Result<&'a Client, tokio_postgres::Error> {
    match client.take().filter(|client| !client.is_closed()) {
        Some(living) => Ok(client.insert(living)),
        None => Ok(client.insert(connect(url).await?)),
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let mut config: tokio_postgres::Config = url.parse()?;
    config.application_name(format!("{APPLICATION_NAME_PREFIX}{}", process_name()));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    sweep(&client).await?;
    Ok(client)
}

/// Drops the databases of ended processes.
async fn sweep(client: &Client) -> Outcome {
    let left = client
        .query(
            "SELECT datname FROM pg_database
             WHERE datname LIKE $1 || '%' AND NOT EXISTS (
                SELECT FROM pg_stat_activity
                WHERE application_name = $2 || split_part(datname, '_', 3))",
            &[&DATABASE_PREFIX.replace('_', "\\_"), &APPLICATION_NAME_PREFIX],
        )
        .await?;
    for row in left {
        // Another process may have dropped it at the same time.
        let _ = client.batch_execute(&drop_statement(row.get(0))).await;
    }
    Ok(())
}

/// The statement that drops a database and closes its connections.
pub(crate) fn drop_statement(database: &str) -> String {
    format!("DROP DATABASE IF EXISTS \"{database}\" WITH (FORCE)")
}
