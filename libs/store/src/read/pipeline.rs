//! One connection on which one statement is pipelined, and its progress.
//!
//! The server answers in the order of sending, so three numbers describe the progress: the newest statement
//! sent, the newest answered, and the newest whose caller was dropped before its answer.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_postgres::{Client, Row, Statement, error::SqlState};

use super::{Parameter, ReadError};

pub(super) struct Pipeline {
    client: Client,
    sql: &'static str,
    prepared: Mutex<Option<Statement>>,
    sent: AtomicU64,
    answered: AtomicU64,
    abandoned: AtomicU64,
    is_stuck: AtomicBool,
    close: Arc<CloseSignal>,
}

/// Number of the newest statement in each state; statements count from 1 in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// Sent to the server.
    pub(super) sent: u64,
    /// Answered, as all before it.
    pub(super) answered: u64,
    /// Its caller was dropped before the answer.
    pub(super) abandoned: u64,
}

impl Progress {
    /// Number of statements without an answer.
    pub(super) fn under_way(self) -> u64 {
        self.sent - self.answered
    }
}

/// A request to close a connection although statements are under way on it.
#[derive(Debug, Default)]
pub(super) struct CloseSignal {
    is_requested: AtomicBool,
    request: Notify,
}

impl CloseSignal {
    /// Resolves once closing is requested.
    pub(super) async fn requested(&self) {
        self.request.notified().await;
    }
}

impl Pipeline {
    pub(super) fn new(client: Client, sql: &'static str, close: Arc<CloseSignal>) -> Self {
        Self {
            client,
            sql,
            prepared: Mutex::default(),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            close,
        }
    }

    /// Whether statements can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed() && !self.is_retired()
    }

    /// Whether the watchdog has asked to close it.
    pub(super) fn is_retired(&self) -> bool {
        self.close.is_requested.load(Relaxed)
    }

    /// Closes it: pending reads fail with [`ReadError::Away`] and can be retried over another connection.
    pub(super) fn retire(&self) {
        self.close.is_requested.store(true, Relaxed);
        self.close.request.notify_one();
    }

    /// Whether a slow statement delays those behind it.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Relaxed)
    }

    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Relaxed);
    }

    pub(super) fn progress(&self) -> Progress {
        // Read in this order, so that `sent` is never below `answered`.
        let (abandoned, answered) = (self.abandoned.load(Relaxed), self.answered.load(Relaxed));
        Progress { sent: self.sent.load(Relaxed).max(answered), answered, abandoned }
    }

    /// Resolves when everything sent before is answered.
    pub(super) async fn probe(&self) {
        // A closed connection needs no probe.
        let _ = self.wait(self.client.check_connection()).await;
    }

    /// Runs the statement, which returns exactly one row; prepares it at its first use.
    pub(super) async fn one(&self, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        let statement = self.statement().await?;
        match self.wait(self.client.query_one(&statement, parameters)).await {
            Err(error) if is_stale(&error) => {
                *self.prepared.lock() = None;
                let statement = self.statement().await?;
                Ok(self.wait(self.client.query_one(&statement, parameters)).await?)
            }
            result => Ok(result?),
        }
    }

    async fn statement(&self) -> Result<Statement, ReadError> {
        if let Some(statement) = &*self.prepared.lock() {
            return Ok(statement.clone());
        }
        let statement = self.wait(self.client.prepare(self.sql)).await?;
        *self.prepared.lock() = Some(statement.clone());
        Ok(statement)
    }

    async fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let number = self.sent.fetch_add(1, Relaxed) + 1;
        let mut in_flight = InFlight { pipeline: self, number, is_answered: false };
        let answer = answer.await;
        in_flight.is_answered = true;
        answer
    }
}

/// A running statement; counts as abandoned when it is dropped without an answer.
struct InFlight<'a> {
    pipeline: &'a Pipeline,
    number: u64,
    is_answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let newest = if self.is_answered { &self.pipeline.answered } else { &self.pipeline.abandoned };
        newest.fetch_max(self.number, Relaxed);
    }
}

/// Whether a migration has made a prepared statement invalid.
fn is_stale(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INVALID_SQL_STATEMENT_NAME))
}
