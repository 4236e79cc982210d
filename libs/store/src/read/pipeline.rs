//! One connection on which point statements are pipelined, and what can be told of its progress.
//!
//! The server answers in the order of asking. So it is enough to count: what was sent, how far answers have come,
//! and the last statement whose caller went away without its answer.

use std::{
    collections::HashMap,
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

/// Where a statement's text lies, and its length. Texts are `include_str!`s, so this tells them apart without
/// reading them for every query.
type Place = (usize, usize);

pub(super) struct Pipeline {
    client: Client,
    prepared: Mutex<HashMap<Place, Statement>>,
    sent: AtomicU64,
    answered: AtomicU64,
    left: AtomicU64,
    is_stuck: AtomicBool,
    retirement: Arc<Retirement>,
}

/// Statements of a connection, by the number of the newest one of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// Sent to the server.
    pub(super) sent: u64,
    /// Answered, and with it all before.
    pub(super) answered: u64,
    /// Left by its caller before it was answered.
    pub(super) left: u64,
}

/// The wish that a connection be closed, whatever is under way on it.
#[derive(Debug, Default)]
pub(super) struct Retirement {
    is_wished: AtomicBool,
    wished: Notify,
}

impl Retirement {
    pub(super) async fn wished(&self) {
        self.wished.notified().await;
    }
}

impl Pipeline {
    pub(super) fn new(client: Client, retirement: Arc<Retirement>) -> Self {
        Self {
            client,
            prepared: Mutex::default(),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            left: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            retirement,
        }
    }

    /// Whether statements can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed() && !self.is_retired()
    }

    /// Whether it had to close for reasons that are not the server's.
    pub(super) fn is_retired(&self) -> bool {
        self.retirement.is_wished.load(Relaxed)
    }

    /// Closes it. Whoever waits on it is told that the connection is closed, and can go elsewhere.
    pub(super) fn retire(&self) {
        self.retirement.is_wished.store(true, Relaxed);
        self.retirement.wished.notify_one();
    }

    /// Whether a statement holds up those behind it.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Relaxed)
    }

    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Relaxed);
    }

    pub(super) fn progress(&self) -> Progress {
        // What is answered was sent before, so read in this order it is never more.
        let (left, answered) = (self.left.load(Relaxed), self.answered.load(Relaxed));
        Progress { sent: self.sent.load(Relaxed).max(answered), answered, left }
    }

    /// Comes when everything sent before is answered.
    pub(super) async fn probe(&self) {
        // A closed connection needs no probe.
        let _ = self.wait(self.client.check_connection()).await;
    }

    pub(super) async fn one(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        let statement = self.statement(sql).await?;
        match self.wait(self.client.query_one(&statement, parameters)).await {
            Err(error) if is_stale(&error) => {
                self.prepared.lock().remove(&place(sql));
                let statement = self.statement(sql).await?;
                Ok(self.wait(self.client.query_one(&statement, parameters)).await?)
            }
            result => Ok(result?),
        }
    }

    async fn statement(&self, sql: &'static str) -> Result<Statement, ReadError> {
        if let Some(statement) = self.prepared.lock().get(&place(sql)) {
            return Ok(statement.clone());
        }
        let statement = self.wait(self.client.prepare(sql)).await?;
        self.prepared.lock().insert(place(sql), statement.clone());
        Ok(statement)
    }

    async fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut waiting = Waiting { on: self, number: self.sent.fetch_add(1, Relaxed) + 1, is_over: false };
        let answer = answer.await;
        waiting.is_over = true;
        answer
    }
}

/// A statement under way.
struct Waiting<'a> {
    on: &'a Pipeline,
    number: u64,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let newest = if self.is_over { &self.on.answered } else { &self.on.left };
        newest.fetch_max(self.number, Relaxed);
    }
}

fn place(sql: &'static str) -> Place {
    (sql.as_ptr().addr(), sql.len())
}

/// A migration changed the shape of a prepared statement.
fn is_stale(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INVALID_SQL_STATEMENT_NAME))
}
