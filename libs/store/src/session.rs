//! One connection of its own, for work that must not share one: migrations hold a session lock, a load holds
//! a long transaction.

use std::time::Duration;

use tokio_postgres::Client;

use crate::{address::Address, error::StoreError};

/// How long a server may take to answer a connection attempt, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes sure that a server answers at `url` and lets us in.
///
/// # Errors
/// When the URL does not parse, nobody answers there, or the server refuses.
pub async fn reach(url: &str) -> Result<(), StoreError> {
    connect(url, "mesh").await.map(drop)
}

/// Opens a connection to `url` that lives as long as the returned client. `purpose` is what
/// `pg_stat_activity` shows for it, unless the URL has a name of its own.
///
/// # Errors
/// When the URL does not parse, nobody answers there, or the server refuses.
pub async fn connect(url: &str, purpose: &str) -> Result<Client, StoreError> {
    connect_with(url, purpose, "").await
}

/// The same with settings of the session, in the form of a server's command line; they count more than the
/// URL's.
pub(crate) async fn connect_with(url: &str, purpose: &str, settings: &str) -> Result<Client, StoreError> {
    let Address { mut config, tls } = Address::read(url).map_err(|source| StoreError::Url { source })?;
    if config.get_application_name().is_none() {
        config.application_name(purpose);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if !settings.is_empty() {
        config.options(format!("{} {settings}", config.get_options().unwrap_or_default()).trim());
    }
    // Boxed: the future is large and would be a part of every caller's.
    let (client, connection) =
        Box::pin(config.connect(tls)).await.map_err(|source| StoreError::Connect { source })?;
    tokio::spawn(async move {
        // Users of the client get the error as well.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a database connection ended");
        }
    });
    Ok(client)
}
