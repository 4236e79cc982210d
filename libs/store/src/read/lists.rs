//! List reads: a pooled connection per statement, cancelled when its caller goes away.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_postgres::Row;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Parameter, ReadError,
    connect::CONNECT_AT_MOST,
    metrics::{self, Connections, Metrics},
    points::CANCEL_AT_MOST,
};
use crate::address::Address;

/// Longest wait for a free connection.
const WAIT_AT_MOST: Duration = Duration::from_secs(1);

/// Settings of the sessions that read lists, beside those of every reading session. A plan for the values at
/// hand: filters that are not given vanish, a cursor becomes an index bound. And a walk along an index rather
/// than a sort of everything, whatever the statistics say of how few rows will match.
pub const LIST_SETTINGS: &str = "-c plan_cache_mode=force_custom_plan -c enable_sort=off";

#[derive(Clone)]
pub(super) struct Lists {
    pool: Pool,
    /// A statement is cancelled over a connection of the same kind.
    tls: MakeRustlsConnect,
    /// Most connections that one statement may have: one that became slow leaves some to the others.
    share: usize,
    shares: Arc<Mutex<HashMap<&'static str, Arc<Semaphore>>>>,
    patience: Duration,
    metrics: Metrics,
}

impl Lists {
    pub(super) fn open(
        Address { mut config, tls }: Address,
        connections: usize,
        patience: Duration,
        metrics: Metrics,
    ) -> Result<Self, ReadError> {
        config.options(format!("{} {LIST_SETTINGS}", config.get_options().unwrap_or_default()));
        let manager = Manager::from_config(
            config,
            tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Pool::builder(manager)
            .max_size(connections)
            .wait_timeout(Some(WAIT_AT_MOST))
            .create_timeout(Some(CONNECT_AT_MOST))
            .runtime(Runtime::Tokio1)
            .build()?;
        Ok(Self { pool, tls, share: share(connections), shares: Arc::default(), patience, metrics })
    }

    pub(super) fn connections(&self) -> Connections {
        let status = self.pool.status();
        let idle = status.available.min(status.size);
        Connections { used: status.size - idle, idle, pending: status.waiting, most: status.max_size }
    }

    pub(super) async fn all(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ReadError> {
        let begun = Instant::now();
        let connection = self.connection(sql).await;
        self.metrics.waited(metrics::Pool::Lists, connection.is_err(), begun.elapsed());
        let (connection, _share) = connection?;
        let mut running = Running { connection: Some(connection), tls: self.tls.clone() };
        let result = timeout(self.patience, running.query(sql, parameters)).await;
        let result = result.map_err(|_| ReadError::Late)?;
        running.connection.take();
        result
    }

    /// A connection for a statement, and its place among those of that statement.
    async fn connection(&self, sql: &'static str) -> Result<(Object, OwnedSemaphorePermit), ReadError> {
        let share = {
            let mut shares = self.shares.lock();
            Arc::clone(shares.entry(sql).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
        };
        let place = timeout(WAIT_AT_MOST, share.acquire_owned()).await;
        let place = place.ok().and_then(Result::ok).ok_or(ReadError::Busy)?;
        Ok((self.pool.get().await?, place))
    }
}

/// How many of so many connections one statement may have: all of a few, three in four of more.
fn share(connections: usize) -> usize {
    connections - connections / 8 * 2
}

/// A connection with a statement under way. Dropped before the statement has ended, it asks the server to
/// stop it and closes the connection, because a cancel request can arrive late and hit the next statement.
struct Running {
    connection: Option<Object>,
    tls: MakeRustlsConnect,
}

impl Running {
    async fn query(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, ReadError> {
        let connection = self.connection.as_ref().ok_or(ReadError::Away(None))?;
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query(&statement, parameters).await?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let client = Object::take(connection);
        let (cancel, tls) = (client.cancel_token(), self.tls.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                match timeout(CANCEL_AT_MOST, cancel.cancel_query(tls)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, "a query could not be cancelled"),
                    Err(_) => tracing::debug!("a query could not be cancelled in time"),
                }
                drop(client);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_leaves_some_of_many_connections_to_the_others() {
        assert_eq!([1, 2, 7, 8, 16, 33].map(share), [1, 2, 7, 6, 12, 25]);
    }
}
