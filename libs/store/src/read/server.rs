//! One PostgreSQL server: the connections of its point reads and of its lists, and the watch of its head.

use std::{sync::Arc, time::Duration};

use tokio::{
    select,
    sync::watch,
    task::{AbortHandle, spawn},
};
use tokio_postgres::Row;

use super::{
    Parameter, ReadError, StoreState,
    activity::ReadActivity,
    head_watch::{HeadSource, watch_server},
    lists::{ListPool, Query},
    metrics::{Connections, Metrics, Pool},
    points::PointPool,
};
use crate::address::Address;

/// The client's timeout is longer than the server's statement timeout by this. It is reached only when a
/// server or a connection is frozen.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(500);

/// Most connections of one point statement, and of all lists. There is one more, which watches the head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) points: usize,
    pub(super) lists: usize,
}

impl Size {
    pub(super) fn at_most(self, other: Self) -> Self {
        Self { points: self.points.min(other.points), lists: self.lists.min(other.lists) }
    }
}

pub(super) struct Server {
    points: PointPool,
    lists: ListPool,
    activity: Arc<ReadActivity>,
    state: watch::Receiver<StoreState>,
    closing: AbortHandle,
}

impl Server {
    pub(super) fn open(
        session: &Address,
        size: Size,
        statement_timeout: Duration,
        source: HeadSource,
        metrics: Metrics,
    ) -> Result<Self, ReadError> {
        let read_timeout = statement_timeout + TIMEOUT_MARGIN;
        let lists = ListPool::open(session.clone(), size.lists.max(1), read_timeout, metrics)?;
        let activity = Arc::<ReadActivity>::default();
        let state = watch_server(watching_session(session), source, Arc::clone(&activity));
        let (session, watched, active) = (session.clone(), state.clone(), Arc::clone(&activity));
        let points = PointPool::new(session, size.points.max(1), read_timeout, watched, active);
        let closing = spawn(close_when_away(lists.clone(), state.clone())).abort_handle();
        Ok(Self { points, lists, activity, state, closing })
    }

    pub(super) async fn point(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        self.head()?;
        self.activity.record();
        match self.points.one(sql, parameters).await {
            Err(ReadError::Aborted(_)) => self.points.one(sql, parameters).await,
            // The pool has repeated a read whose connection broke.
            result => result,
        }
    }

    pub(super) async fn list(
        &self,
        list: &'static str,
        queries: &[Query<'_>],
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        self.activity.record();
        let mut state = self.state.clone();
        let read = async {
            match self.lists.all(list, queries).await {
                // A single connection may break while the server is reachable.
                Err(ReadError::Away(_) | ReadError::Aborted(_)) => self.lists.all(list, queries).await,
                result => result,
            }
        };
        select! {
            biased;
            _ = state.wait_for(|state| !state.is_there) => Err(ReadError::Away(None)),
            result = read => result,
        }
    }

    /// Whether the server answers and does not refuse the first connection for lists.
    pub(super) async fn lists_ready(&self) -> Result<(), ReadError> {
        self.head()?;
        self.lists.ready().await
    }

    pub(super) fn connections(&self, pool: Pool) -> Connections {
        match pool {
            Pool::Points => self.points.connections(),
            Pool::Lists => self.lists.connections(),
        }
    }

    pub(super) fn state(&self) -> StoreState {
        *self.state.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<StoreState> {
        self.state.clone()
    }

    /// The newest block.
    ///
    /// # Errors
    /// [`ReadError::Away`] while the server does not answer.
    pub(super) fn head(&self) -> Result<Option<(u64, i64)>, ReadError> {
        match self.state() {
            StoreState { head, is_there: true, .. } => Ok(head),
            StoreState { refusal, .. } => Err(ReadError::Away(refusal.map(Into::into))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.abort();
    }
}

/// Closes the connections of lists whenever the server goes away. After a silent end of a server, each would let one read
/// wait until it is late.
async fn close_when_away(lists: ListPool, mut state: watch::Receiver<StoreState>) {
    while state.wait_for(|state| !state.is_there).await.is_ok() {
        lists.close_unused();
        if state.wait_for(|state| state.is_there).await.is_err() {
            break;
        }
    }
}

/// The address of the watching session, which has its own name in the server's listings.
fn watching_session(session: &Address) -> Address {
    let mut watching = session.clone();
    let name = session.config.get_application_name().unwrap_or_default();
    watching.config.application_name(format!("{name} watch"));
    watching
}
