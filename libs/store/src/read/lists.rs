//! List reads: a pooled connection per statement, cancelled when its caller goes away.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_postgres::Row;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Parameter, ReadError,
    backoff::CONNECT_TIMEOUT,
    metrics::{self, Connections, Metrics},
    points::CANCEL_TIMEOUT,
};
use crate::address::Address;

/// Additional settings of the sessions that read lists. Generic plans: a statement is planned once per
/// connection, since it has the shape of its request. No sorts: an index scan in list order, even where
/// statistics promise few rows. No parallel workers, which would mix the parts of a statement.
pub const LIST_SETTINGS: &str =
    "-c plan_cache_mode=force_generic_plan -c enable_sort=off -c max_parallel_workers_per_gather=0";

/// The connections for lists. Cloning shares them.
#[derive(Clone)]
pub(super) struct ListPool {
    pool: Pool,
    /// For the connections that carry cancel requests.
    tls: MakeRustlsConnect,
    /// Most connections that one list may use, so that a slow one does not take all of them.
    share: usize,
    shares: Arc<Mutex<HashMap<&'static str, Arc<Semaphore>>>>,
    read_timeout: Duration,
    /// Longest wait for a free connection: half of the time for a read, so that the statement has the other
    /// half. Waiting reads are served in the order of their arrival.
    acquire_timeout: Duration,
    metrics: Metrics,
}

impl ListPool {
    pub(super) fn open(
        Address { mut config, tls }: Address,
        connections: usize,
        read_timeout: Duration,
        metrics: Metrics,
    ) -> Result<Self, ReadError> {
        config.options(format!("{} {LIST_SETTINGS}", config.get_options().unwrap_or_default()));
        let acquire_timeout = read_timeout / 2;
        let manager = Manager::from_config(
            config,
            tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Pool::builder(manager)
            .max_size(connections)
            .wait_timeout(Some(acquire_timeout))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .runtime(Runtime::Tokio1)
            // The connection used last: while there are few reads, few sessions serve them and stay in the
            // processor's caches.
            .queue_mode(QueueMode::Lifo)
            .build()?;
        let share = share(connections);
        Ok(Self { pool, tls, share, shares: Arc::default(), read_timeout, acquire_timeout, metrics })
    }

    pub(super) fn connections(&self) -> Connections {
        let status = self.pool.status();
        let idle = status.available.min(status.size);
        Connections { used: status.size - idle, idle, pending: status.waiting, most: status.max_size }
    }

    /// Runs a statement of a list and returns all its rows.
    pub(super) async fn all(
        &self,
        list: &'static str,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ReadError> {
        let started = Instant::now();
        let connection = self.connection(list).await;
        self.metrics.waited(metrics::Pool::Lists, connection.is_err(), started.elapsed());
        let (connection, _share) = connection?;
        let mut running = Running { connection: Some(connection), tls: self.tls.clone() };
        let result = timeout(self.read_timeout, running.query(sql, parameters)).await;
        let result = result.map_err(|_| ReadError::Late)?;
        running.connection.take();
        result
    }

    /// A connection and its permit from the list's share.
    async fn connection(&self, list: &'static str) -> Result<(Object, OwnedSemaphorePermit), ReadError> {
        let share = {
            let mut shares = self.shares.lock();
            Arc::clone(shares.entry(list).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
        };
        let permit = timeout(self.acquire_timeout, share.acquire_owned()).await;
        let permit = permit.ok().and_then(Result::ok).ok_or(ReadError::Busy)?;
        Ok((self.pool.get().await?, permit))
    }
}

/// How many of `connections` one list may use: all of up to 7, three quarters of more.
fn share(connections: usize) -> usize {
    connections - connections / 8 * 2
}

/// A connection with a running statement. When it is dropped before the statement has ended, it cancels the
/// statement and closes the connection, because a late cancel request could cancel the next statement.
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
                match timeout(CANCEL_TIMEOUT, cancel.cancel_query(tls)).await {
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
    fn one_list_leaves_some_of_many_connections_to_the_others() {
        assert_eq!([1, 2, 7, 8, 16, 33].map(share), [1, 2, 7, 6, 12, 25]);
    }
}
