//! Watches a server's newest block, and whether the server answers.
//!
//! One connection reads the row of `last_block` every [`POLL_INTERVAL`] ([`IDLE_POLL_INTERVAL`] when nothing
//! else is read), and at once when the server notifies of a new block; notifications can be lost, so they
//! only bring the next poll forward. A server counts as unreachable when a poll has no answer within
//! [`RESPONSE_TIMEOUT`], or when the connection broke and there is no other within [`RECONNECT_GRACE`].

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::poll_fn};
use mesh_problem::error_chain;
use tokio::{
    pin, select,
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, error::SqlState};

use super::{ReadError, activity::ReadActivity, backoff::Backoff, head_of};
use crate::address::{Address, Stream};

/// Pause between two polls while the server is read from, or when it does not notify.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Pause between two polls otherwise.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time for the answer to a poll before the server counts as unreachable: a busy one, or a paused machine, answers sooner.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(1500);

/// Time for a new connection, during most of which the server counts as away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time to replace a connection that is broken before the server counts as away.
const RECONNECT_GRACE: Duration = Duration::from_millis(500);

/// Why reads of a database are refused whose tables were there before.
const WITHOUT_TABLES: &str = "its tables have gone, or `search_path` hides them";

/// Reads the head; always one row.
const HEAD: &str = "SELECT head.height AS head_height, head.block_time AS head_time
    FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true";

/// The newest block of a store, and whether the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreState {
    /// Height and time (nanoseconds since the Unix epoch) of its newest block, if it has one; the last known one
    /// while the server is unreachable.
    pub head: Option<(u64, i64)>,
    /// Whether the server responds.
    pub is_there: bool,
    /// Why it refuses connections, or reads, when it answers and does.
    pub refusal: Option<&'static str>,
}

/// How a server's head is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadSource {
    /// By notifications, with polls in case one is lost.
    Notify,
    /// By polls alone: a replica sends no notifications.
    PollOnly,
}

/// Watches a server until the last receiver is dropped. It counts as unreachable until its first answer.
pub(super) fn watch_server(
    address: Address,
    source: HeadSource,
    activity: Arc<ReadActivity>,
) -> watch::Receiver<StoreState> {
    let (state, receiver) = watch::channel(StoreState::default());
    tokio::spawn(async move {
        select! {
            () = state.closed() => {}
            () = keep_watching(&address, source, &state, &activity) => {}
        }
    });
    receiver
}

async fn keep_watching(
    address: &Address,
    source: HeadSource,
    state: &watch::Sender<StoreState>,
    activity: &ReadActivity,
) {
    let (mut backoff, mut cause) = (Backoff::default(), String::new());
    loop {
        if let Some((client, connection)) = connect(address, state, &mut cause).await
            && poll_head(&client, connection, source, state, activity).await
        {
            // The server has answered over the broken connection: reconnect without a pause.
            backoff = Backoff::default();
            continue;
        }
        set_away(state);
        sleep(backoff.next()).await;
    }
}

/// Connects. `cause`: why the last connection failed, which is logged when it changes.
async fn connect(
    Address { config, tls }: &Address,
    state: &watch::Sender<StoreState>,
    cause: &mut String,
) -> Option<(Client, Connection<Socket, Stream>)> {
    let connecting = timeout(CONNECT_TIMEOUT, config.connect(tls.clone()));
    pin!(connecting);
    let connected = match timeout(RECONNECT_GRACE, &mut connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            set_away(state);
            connecting.await
        }
    };
    let (failed, refusal) = match connected {
        Ok(Ok(connected)) => {
            if !cause.is_empty() {
                tracing::info!("the database can be reached again");
                cause.clear();
            }
            return Some(connected);
        }
        Ok(Err(error)) => (error_chain(&error), refusal(&error)),
        Err(_) => ("no answer".to_owned(), None),
    };
    state.send_if_modified(|state| std::mem::replace(&mut state.refusal, refusal) != refusal);
    if *cause != failed {
        tracing::warn!(error = failed, "the database cannot be reached");
        *cause = failed;
    }
    None
}

/// Polls the head until the connection breaks or the server stops answering. Returns whether it has answered.
async fn poll_head(
    client: &Client,
    connection: Connection<Socket, Stream>,
    source: HeadSource,
    state: &watch::Sender<StoreState>,
    activity: &ReadActivity,
) -> bool {
    let poll_now = Arc::new(Notify::new());
    let polling = async {
        let notifies = match source {
            HeadSource::PollOnly => false,
            HeadSource::Notify => match listen(client).await {
                Some(notifies) => notifies,
                None => return false,
            },
        };
        let mut begins = activity.begins();
        let mut has_answered = false;
        while let Some(head) = read_head(client, state).await {
            has_answered = true;
            let latest = StoreState { head, is_there: true, refusal: None };
            state.send_if_modified(|state| std::mem::replace(state, latest) != latest);
            let is_idle = notifies && !activity.is_busy();
            select! {
                () = poll_now.notified() => {}
                Ok(()) = begins.changed(), if is_idle => {}
                () = sleep(if is_idle { IDLE_POLL_INTERVAL } else { POLL_INTERVAL }) => {}
            }
        }
        has_answered
    };
    pin!(polling);
    select! {
        has_answered = &mut polling => return has_answered,
        () = drive(connection, &poll_now) => {}
    }
    // The connection is broken: the poll under way, or the next one, fails.
    poll_now.notify_one();
    polling.await
}

/// Subscribes to notifications; returns whether the server sends them. `None` when the connection broke or the
/// server does not answer.
async fn listen(client: &Client) -> Option<bool> {
    match timeout(CONNECT_TIMEOUT, client.batch_execute("LISTEN mesh_head")).await {
        Ok(Ok(())) => Some(true),
        Ok(Err(error)) if error.as_db_error().is_some() => {
            tracing::warn!(
                error = error_chain(&error),
                "the database sends no notifications of new blocks; polling only"
            );
            Some(false)
        }
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Reads the head; returns the last known one when the server answers without it. `None` when the connection broke, the
/// server does not answer, or its tables have gone.
async fn read_head(client: &Client, state: &watch::Sender<StoreState>) -> Option<Option<(u64, i64)>> {
    let Ok(answer) = timeout(RESPONSE_TIMEOUT, client.query_typed_one(HEAD, &[])).await else {
        tracing::warn!("the database says nothing any more");
        // Another server may take the address at once; reads that wait for this one would wait until they are late.
        set_away(state);
        return None;
    };
    match answer.map_err(ReadError::from).and_then(|row| head_of(&row)) {
        Ok(head) => Some(head),
        Err(ReadError::Away(_)) => None,
        Err(error) => {
            // An error is an answer, too.
            tracing::debug!(error = error_chain(&error), "the head of the store cannot be read");
            let head = state.borrow().head;
            if head.is_some() && is_without_tables(&error) {
                // The tables may be out of sight only, such as by a `search_path`: no reset before they are empty.
                state.send_modify(|state| (state.is_there, state.refusal) = (false, Some(WITHOUT_TABLES)));
                return None;
            }
            Some(head)
        }
    }
}

/// Whether the table of the head is not found: the database was not migrated yet, was emptied, or `search_path` hides it.
fn is_without_tables(error: &ReadError) -> bool {
    matches!(error, ReadError::Failed(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE))
}

/// Drives a connection until it ends; requests a poll at each notification.
async fn drive(mut connection: Connection<Socket, Stream>, poll_now: &Notify) {
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(_) = message {
            poll_now.notify_one();
        }
    }
}

/// Why a server refuses a connection, where no time limit or network is to blame.
fn refusal(error: &tokio_postgres::Error) -> Option<&'static str> {
    match error.code().map(SqlState::code) {
        Some("28P01") => Some("it refuses user and password"),
        Some(code) if code.starts_with("28") => Some("it refuses the user: see its log and its pg_hba.conf"),
        Some("53300") => Some("it has no free connection"),
        Some("3D000") => Some("it has no database of this name"),
        Some("42501") => Some("the user may not connect"),
        Some(_) => None,
        // The driver has no code for it.
        None => error_chain(error).contains("password missing").then_some("it requires a password"),
    }
}

fn set_away(state: &watch::Sender<StoreState>) {
    state.send_if_modified(|state| std::mem::replace(&mut state.is_there, false));
}
