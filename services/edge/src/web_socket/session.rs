//! A connection that speaks WebSocket, from the answer to its handshake to its end (F1-F3). One task reads and
//! writes: while a frame waits for the client, no other one is taken and no frame of the client is read, so that
//! a slow client holds one frame and, for each watch, one newer state.

use std::{thread, time::Duration};

use actix::Addr;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep_until},
};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

use super::{
    frame::{self, Command, Id},
    handshake::Upgrade,
    socket::{End, WebSocket},
    watch::{BeginWatch, News, Watch, next_of},
};
use crate::{access_log::record::Ended, gateway::Gateway};

/// Most watches of a connection (F1).
pub(crate) const MAX_WATCHES: usize = 64;

/// Longest frame and longest message of a client, bytes (F3).
pub(crate) const MAX_FRAME_BYTES: usize = 16 << 10;

/// Time between two pings, and the longest time without an answer to any (F3).
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PONG_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that speaks WebSocket.
pub(crate) struct Session<S> {
    socket: WebSocket<S>,
    upgrade: Upgrade,
    gateway: Addr<Gateway>,
    ending: BoxFuture<'static, Problem>,
    watches: Vec<Watch>,
    /// Index of the watch that is polled first: the one after the last state's, so that a slow client gets the
    /// states of all watches in turn.
    turn: usize,
    pinged_at: Instant,
    /// When the first ping was sent that the client has not answered.
    unanswered_since: Option<Instant>,
    /// Bytes of all frames sent, but for answers to pings.
    sent: u64,
}

/// The next step of a connection.
enum Step {
    Stop(Problem),
    Received(Result<Message, End>),
    News(usize, News),
    Beat,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// A connection whose handshake has been answered.
    pub(crate) async fn new(socket: S, upgrade: Upgrade, gateway: Addr<Gateway>) -> Self {
        Self {
            socket: WebSocket::new(socket, MAX_FRAME_BYTES).await,
            ending: Box::pin(upgrade.ending()),
            upgrade,
            gateway,
            watches: Vec::new(),
            turn: 0,
            pinged_at: Instant::now(),
            unanswered_since: None,
            sent: 0,
        }
    }

    /// Serves the connection to its end. Returns the sent bytes and how it ended.
    pub(crate) async fn run(mut self: Box<Self>) -> (u64, Ended) {
        let end = loop {
            let step = self.step().await;
            if let Err(end) = self.take(step).await {
                break end;
            }
        };
        // Its end takes time, and nothing is sent then.
        let Self { socket, watches, sent, .. } = *self;
        drop(watches);
        (sent, Box::pin(socket.end(end)).await)
    }

    /// Waits for the next step. A state is taken only once the connection is writable; until then a newer one may
    /// replace it (W3).
    async fn step(&mut self) -> Step {
        let beat = self.next_beat();
        let Self { socket, upgrade, ending, watches, turn, .. } = self;
        let news = async {
            upgrade.client.connection.until_writable().await;
            next_of(watches, *turn).await
        };
        tokio::select! {
            reason = ending => Step::Stop(reason),
            received = socket.next() => Step::Received(received),
            (index, news) = news => Step::News(index, news),
            () = sleep_until(beat) => Step::Beat,
        }
    }

    async fn take(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Stop(reason) => Err(match reason.code {
                Code::Unauthenticated => End::Close(CloseCode::Policy, "the key is in force no longer"),
                _ => End::Close(CloseCode::Away, "the edge is stopping"),
            }),
            Step::Received(message) => {
                let message = message?;
                if let Some(key) = &self.upgrade.client.key {
                    key.meter.receive(message.len());
                }
                // Boxed, since it is rare and has the most states.
                Box::pin(self.receive(message)).await
            }
            Step::News(index, news) => self.tell(index, news).await,
            Step::Beat => self.beat().await,
        }
    }

    async fn receive(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Text(text) => self.obey(&text).await,
            Message::Binary(_) => {
                let problem = Problem::invalid(MALFORMED, "frames must be text");
                self.refuse(&Id::none(), &problem).await
            }
            Message::Pong(_) => {
                self.unanswered_since = None;
                Ok(())
            }
            Message::Close(_) => Err(End::ByClient),
            // The next read sends the answer.
            Message::Ping(_) | Message::Frame(_) => Ok(()),
        }
    }

    /// Begins or ends a watch.
    async fn obey(&mut self, text: &str) -> Result<(), End> {
        let (id, command) = match frame::read(text) {
            Ok(read) => read,
            Err((id, problem)) => return self.refuse(&id, &problem).await,
        };
        let position = self.watches.iter().position(|watch| watch.id == id);
        let problem = match (command, position) {
            (Command::Unwatch, Some(position)) => {
                self.watches.remove(position);
                return Ok(());
            }
            (Command::Unwatch, None) => Problem::invalid(MALFORMED, "no watch has this id"),
            (Command::Watch { .. }, Some(_)) => Problem::invalid(MALFORMED, "a watch with this id is open"),
            (Command::Watch { .. }, None) if self.watches.len() == MAX_WATCHES => {
                let reason = "too many watches are open on this connection";
                let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason);
                problem.with_inner(format!("at most {MAX_WATCHES} at the same time"))
            }
            (Command::Watch { target, after }, None) => {
                let begin = BeginWatch { upgrade: self.upgrade.clone(), target, after };
                // Most connections have one watch.
                self.watches.reserve_exact(1);
                self.watches.push(Watch::begin(id, &self.gateway, begin));
                return Ok(());
            }
        };
        self.refuse(&id, &problem).await
    }

    async fn refuse(&mut self, id: &Id, problem: &Problem) -> Result<(), End> {
        self.write(frame::error(id, problem)).await
    }

    /// Sends the news of a watch.
    async fn tell(&mut self, index: usize, news: News) -> Result<(), End> {
        let watch = &mut self.watches[index];
        watch.sent_at = Instant::now();
        self.turn = index + 1;
        let frame = match news {
            News::State(emission) | News::Begun(Some(emission)) => frame::state(&watch.id, &emission),
            News::Begun(None) => unchanged(watch),
            News::End(problem) => {
                let frame = frame::error(&watch.id, &problem);
                self.watches.remove(index);
                self.turn = index;
                frame
            }
        };
        self.write(frame).await
    }

    /// When the next ping or sign of life is due, or the client's answer to pings is late.
    fn next_beat(&self) -> Instant {
        let late = self.unanswered_since.map(|since| since + PONG_TIMEOUT);
        let signs = self.watches.iter().filter_map(Watch::sign_at);
        signs.chain(late).fold(self.pinged_at + PING_INTERVAL, Instant::min)
    }

    /// Sends all signs of life and the ping that are due.
    async fn beat(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if self.unanswered_since.is_some_and(|since| since + PONG_TIMEOUT <= now) {
            return Err(End::Close(CloseCode::Error, "no answer to pings"));
        }
        let mut pieces = Vec::new();
        for watch in &mut self.watches {
            if watch.sign_at().is_some_and(|due| due <= now) {
                watch.sent_at = now;
                pieces.extend(unchanged(watch));
            }
        }
        if self.pinged_at + PING_INTERVAL <= now {
            self.pinged_at = now;
            self.unanswered_since.get_or_insert(now);
            pieces.extend(frame::ping());
        }
        self.write(pieces).await
    }

    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<(), End> {
        let began = Instant::now();
        let bytes = pieces.iter().map(Bytes::len).sum();
        self.sent += bytes as u64;
        if let Some(key) = &self.upgrade.client.key {
            key.meter.send(bytes);
        }
        self.socket.write(pieces).await?;
        // Yield to other runnable threads.
        thread::yield_now();
        if began.elapsed() > PING_INTERVAL {
            // A client that reads slowly has not read the ping either.
            self.unanswered_since = self.unanswered_since.map(|_| Instant::now());
        }
        Ok(())
    }
}

/// The sign of life of a watch.
fn unchanged(watch: &Watch) -> Vec<Bytes> {
    frame::unchanged(&watch.id, watch.height().unwrap_or_default())
}
