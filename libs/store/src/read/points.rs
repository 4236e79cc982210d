//! Point reads: each statement has pipelined connections of its own, so that one that waits for a lock delays
//! no other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_postgres::Row;

use super::{Parameter, ReadError, StoreState, activity::ReadActivity, lane::Lane, metrics::Connections};
use crate::address::Address;

/// Address and length of a statement's text. Texts are static, so this identifies them without comparing
/// bytes.
type StatementKey = (usize, usize);

/// The connections of all statements. A lane is opened at the first read of its statement and stays: there are
/// as many as a service has point statements.
pub(super) struct PointPool {
    address: Address,
    /// Most connections of one statement.
    connections: usize,
    read_timeout: Duration,
    server: watch::Receiver<StoreState>,
    activity: Arc<ReadActivity>,
    lanes: RwLock<HashMap<StatementKey, Arc<Lane>>>,
}

impl PointPool {
    /// A pool without connections; each statement will have `connections` at most. `read_timeout` is the limit
    /// of one read, longer than the server's statement timeout.
    pub(super) fn new(
        address: Address,
        connections: usize,
        read_timeout: Duration,
        server: watch::Receiver<StoreState>,
        activity: Arc<ReadActivity>,
    ) -> Self {
        Self { address, connections, read_timeout, server, activity, lanes: RwLock::default() }
    }

    /// Runs a statement that returns exactly one row.
    pub(super) async fn one(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        self.lane(sql).one(parameters).await
    }

    fn lane(&self, sql: &'static str) -> Arc<Lane> {
        let key = (sql.as_ptr().addr(), sql.len());
        if let Some(lane) = self.lanes.read().get(&key) {
            return Arc::clone(lane);
        }
        let open = || {
            let Self { address, connections, read_timeout, server, activity, .. } = self;
            Arc::new(Lane::open(address, sql, *connections, *read_timeout, server.clone(), activity))
        };
        Arc::clone(self.lanes.write().entry(key).or_insert_with(open))
    }

    /// How many connections all statements have.
    pub(super) fn connections(&self) -> Connections {
        self.lanes.read().values().map(|lane| lane.connections()).sum()
    }
}
