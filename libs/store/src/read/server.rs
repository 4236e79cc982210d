//! One PostgreSQL server: the two ways into it, and the watch that says whether it is there.

use std::time::Duration;

use tokio::{select, sync::watch};
use tokio_postgres::Row;

use super::{
    Parameter, ReadError, StoreState,
    lists::Lists,
    metrics::{Connections, Metrics, Pool},
    points::Points,
    watch::{News, watch_server},
};
use crate::address::Address;

/// How much longer than the server's own statement timeout a statement is waited for. Only a server or a
/// connection that is frozen needs it.
const BEYOND_STATEMENT_TIMEOUT: Duration = Duration::from_millis(500);

/// How many connections are kept, beside the one that watches.
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
    points: Points,
    lists: Lists,
    state: watch::Receiver<StoreState>,
}

impl Server {
    pub(super) fn open(
        session: &Address,
        size: Size,
        statement_timeout: Duration,
        news: News,
        metrics: Metrics,
    ) -> Result<Self, ReadError> {
        let patience = statement_timeout + BEYOND_STATEMENT_TIMEOUT;
        let lists = Lists::open(session.clone(), size.lists.max(1), patience, metrics)?;
        let state = watch_server(watching(session), news);
        let points = Points::open(session, size.points.max(1), patience, state.clone());
        Ok(Self { points, lists, state })
    }

    pub(super) async fn point(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        self.head()?;
        self.points.one(sql, parameters).await
    }

    pub(super) async fn list(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ReadError> {
        let mut state = self.state.clone();
        let read = async {
            match self.lists.all(sql, parameters).await {
                // One connection may break while the server is there.
                Err(ReadError::Away(_)) => self.lists.all(sql, parameters).await,
                result => result,
            }
        };
        select! {
            biased;
            _ = state.wait_for(|state| !state.is_there) => Err(ReadError::Away(None)),
            result = read => result,
        }
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

    /// Its newest block.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn head(&self) -> Result<Option<(u64, i64)>, ReadError> {
        match self.state() {
            StoreState { head, is_there: true } => Ok(head),
            StoreState { is_there: false, .. } => Err(ReadError::Away(None)),
        }
    }
}

/// The session that watches: its own name keeps it apart from those that answer requests.
fn watching(session: &Address) -> Address {
    let mut watching = session.clone();
    let name = session.config.get_application_name().unwrap_or_default();
    watching.config.application_name(format!("{name} watch"));
    watching
}
