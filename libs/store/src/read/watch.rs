//! Watching a server: its head, and whether it is there.
//!
//! One connection looks at the row of `last_block` every [`POLL`], and at once when the server tells of a new
//! block; notifications can be lost, so they only hasten the next look. A look that stays unanswered for
//! [`SILENT_AT_MOST`] means a frozen server.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::poll_fn};
use tokio::{
    pin, select,
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use super::{ReadError, connect::Pause, head_of};
use crate::address::{Address, Stream};

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(250);

/// How long a server may say nothing until it counts as away.
const SILENT_AT_MOST: Duration = Duration::from_secs(3);

/// Time to replace a broken connection before anybody hears of it.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Always one row.
const HEAD: &str = "SELECT head.height AS head_height, head.block_time AS head_time
    FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true";

/// Where a store stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreState {
    /// Height and time (nanoseconds since the Unix epoch) of its newest block, when it has one. The last that
    /// was seen while it is away.
    pub head: Option<(u64, i64)>,
    /// Whether it answers.
    pub is_there: bool,
}

/// Whether the server tells of new blocks. A replica cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Told,
    Untold,
}

/// Watches a server until the last receiver is gone. It counts as away until it has answered for the first time.
pub(super) fn watch_server(address: Address, news: News) -> watch::Receiver<StoreState> {
    let (state, receiver) = watch::channel(StoreState::default());
    tokio::spawn(async move {
        select! {
            () = state.closed() => {}
            () = keep_watching(&address, news, &state) => {}
        }
    });
    receiver
}

async fn keep_watching(address: &Address, news: News, state: &watch::Sender<StoreState>) {
    let mut pause = Pause::default();
    loop {
        if let Some((client, connection)) = connect(address, state).await
            && look_on(&client, connection, news, state).await
        {
            // Whoever breaks one connection may take another one at once.
            pause = Pause::default();
            continue;
        }
        set_away(state);
        sleep(pause.next()).await;
    }
}

async fn connect(
    Address { config, tls }: &Address,
    state: &watch::Sender<StoreState>,
) -> Option<(Client, Connection<Socket, Stream>)> {
    let connecting = timeout(SILENT_AT_MOST, config.connect(tls.clone()));
    pin!(connecting);
    let made = match timeout(AT_ONCE, &mut connecting).await {
        Ok(made) => made,
        Err(_) => {
            set_away(state);
            connecting.await
        }
    };
    match made {
        Ok(Ok(made)) => Some(made),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the database cannot be watched");
            None
        }
        Err(_) => None,
    }
}

/// Looks at the head until the connection breaks or the server falls silent. Says whether it has answered.
async fn look_on(
    client: &Client,
    connection: Connection<Socket, Stream>,
    news: News,
    state: &watch::Sender<StoreState>,
) -> bool {
    let sooner = Arc::new(Notify::new());
    let looking = async {
        if news == News::Told && !listen(client).await {
            return false;
        }
        let mut has_answered = false;
        while let Some(head) = look(client, state).await {
            has_answered = true;
            let seen = StoreState { head, is_there: true };
            state.send_if_modified(|state| std::mem::replace(state, seen) != seen);
            select! {
                () = sooner.notified() => {}
                () = sleep(POLL) => {}
            }
        }
        has_answered
    };
    pin!(looking);
    select! {
        has_answered = &mut looking => return has_answered,
        () = drive(connection, &sooner) => {}
    }
    // The connection is broken: the look under way, or the next one, finds that out.
    sooner.notify_one();
    looking.await
}

async fn listen(client: &Client) -> bool {
    match timeout(SILENT_AT_MOST, client.batch_execute("LISTEN mesh_head")).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) if error.as_db_error().is_some() => {
            tracing::warn!(%error, "the database tells of no new blocks, they are only looked for");
            true
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

/// The head as the server says it, or none when it says nothing.
async fn look(client: &Client, state: &watch::Sender<StoreState>) -> Option<Option<(u64, i64)>> {
    let Ok(answer) = timeout(SILENT_AT_MOST, client.query_typed_one(HEAD, &[])).await else {
        tracing::warn!("the database says nothing any more");
        set_away(state);
        return None;
    };
    match answer.map_err(ReadError::from).and_then(|row| head_of(&row)) {
        Ok(head) => Some(head),
        Err(ReadError::Away(_)) => None,
        Err(error) => {
            // It answers, if only that it has no such table: it may not be migrated yet.
            tracing::debug!(%error, "the head of the store cannot be read");
            Some(None)
        }
    }
}

/// Carries a connection and tells of each notification. Ends with the connection.
async fn drive(mut connection: Connection<Socket, Stream>, sooner: &Notify) {
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(_) = message {
            sooner.notify_one();
        }
    }
}

fn set_away(state: &watch::Sender<StoreState>) {
    state.send_if_modified(|state| std::mem::replace(&mut state.is_there, false));
}
