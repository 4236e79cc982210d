//! A separate connection, for work that must not share one: migrations need a session lock, a load needs a
//! long transaction.

use std::time::Duration;

use futures_util::future::BoxFuture;
use mesh_problem::error_chain;
use tokio::time::timeout;
use tokio_postgres::{Client, config::LoadBalanceHosts};

use crate::{address::Address, error::StoreError};

/// Timeout of a connection attempt, unless the URL sets another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of one of several attempts that begin at random hosts.
const SHORT_ATTEMPT: Duration = Duration::from_secs(3);

/// Ends the time limits of role and database. They are made for requests; migrations and loads take longer.
pub const NO_TIMEOUTS: &str = "-c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0 \
    -c idle_in_transaction_session_timeout=0";

/// Settings of every session, which role and database could set otherwise: rows that a policy hides are an error instead
/// of absent, transactions read what is committed, and the log has no line for each message of the server.
pub(crate) const EVERY_SESSION: &str =
    r"-c row_security=off -c default_transaction_isolation=read\ committed -c client_min_messages=warning";

/// Refuses a session in which a trigger of the schema does not fire: it would store rows and leave derived tables as they
/// are.
///
/// # Errors
/// [`StoreError::NoTriggers`]; the server is gone.
pub async fn check_triggers(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('session_replication_role') = 'replica' OR EXISTS (
        SELECT FROM pg_trigger
        WHERE NOT tgisinternal AND tgenabled NOT IN ('O', 'A') AND pg_table_is_visible(tgrelid)
    )";
    let row = client.query_one(sql, &[]).await.map_err(StoreError::in_step("checking the session"))?;
    if row.get(0) { Err(StoreError::NoTriggers) } else { Ok(()) }
}

/// Opens a connection to `url`, which is closed when the returned client is dropped. `purpose` is its name in
/// `pg_stat_activity`, unless the URL has one.
///
/// # Errors
/// When the URL does not parse, no server answers in time, or it refuses the connection.
pub async fn connect(url: &str, purpose: &str) -> Result<Client, StoreError> {
    connect_with(url, purpose, NO_TIMEOUTS).await
}

/// Like [`connect`], with settings of the session in the form of command-line options. They override those of
/// the URL. The future is boxed: callers stay small, and it is compiled once and not in every program.
///
/// # Errors
/// As [`connect`].
pub fn connect_with<'a>(
    url: &'a str,
    purpose: &'a str,
    settings: &'a str,
) -> BoxFuture<'a, Result<Client, StoreError>> {
    Box::pin(try_connect(url, purpose, settings))
}

async fn try_connect(url: &str, purpose: &str, settings: &str) -> Result<Client, StoreError> {
    let Address { mut config, tls } = Address::read(url).map_err(|source| StoreError::Url { source })?;
    if config.get_application_name().is_none() {
        config.application_name(purpose);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    let given = config.get_options().unwrap_or_default();
    config.options(format!("{given} {EVERY_SESSION} {settings}").trim());
    // The driver's timeout ends with the connection to a host: who accepts it may never answer.
    let per_host = config.get_connect_timeout().map_or(CONNECT_TIMEOUT, |timeout| *timeout);
    let hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
    let whole = per_host.saturating_mul(2).saturating_mul(hosts);
    // Each attempt may begin at another host: one that hangs takes the time of one attempt only.
    let one = if config.get_load_balance_hosts() == LoadBalanceHosts::Random { SHORT_ATTEMPT } else { whole };
    let connecting = async {
        loop {
            if let Ok(connected) = timeout(one, config.connect(tls.clone())).await {
                break connected;
            }
        }
    };
    let connected = timeout(whole, connecting).await;
    let connected = connected.map_err(|_| StoreError::Silent { step: "connecting" })?;
    let (client, connection) = connected.map_err(|source| StoreError::Connect { source })?;
    tokio::spawn(async move {
        // Only logged, because the users of the client get the error as well.
        if let Err(error) = connection.await {
            tracing::debug!(error = error_chain(&error), "a database connection ended");
        }
    });
    Ok(client)
}
