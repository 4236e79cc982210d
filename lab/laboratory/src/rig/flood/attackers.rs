//! Attacking clients: each holds one connection until the edge closes it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh_testbed::http2::{self, AUTHORITY, Frame, GOAWAY, get_request};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, interval, sleep, sleep_until},
};

use crate::{
    rig::report::in_ms,
    watches::{PER_ADDRESS, connect},
};

/// The edge closes a client that reads nothing after this time (contract section 7).
pub(super) const STALLED: Duration = Duration::from_secs(120);
/// Concurrent connection attempts: more would only fill the system's queue.
const CONNECTING: usize = 256;
/// Number of source addresses of attackers; the load has another one.
const ADDRESSES: usize = 4;
/// Receive buffer of a client that reads nothing.
pub(super) const NARROW_BYTES: u32 = 4096;
/// A request whose answer is long and comes from the edge itself.
const LONG: &str = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: rig\r\nAccept-Encoding: gzip\r\n\r\n";
/// The answer is longer than this.
const LONG_BYTES: usize = 400_000;
/// How long an answer is left unread after the edge's limit.
pub(super) const UNREAD_LONGER: Duration = Duration::from_secs(5);
const SHORT: &str = "GET /health HTTP/1.1\r\nHost: rig\r\n\r\n";
/// The settings of HTTP/2 that leave no room for an answer: `SETTINGS_INITIAL_WINDOW_SIZE` is 0.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
/// Requests on one connection without a window: the load comes from their unread answers, not from their
/// number.
const UNREAD_REQUESTS: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Sends half a request head.
    Head,
    /// Sends one byte of a body each second.
    Body,
    /// Requests a long answer and reads nothing.
    Unread,
    /// Requests long answers over HTTP/2 with a flow-control window of 0.
    Window,
    /// Sends one request and keeps the connection open.
    Idle,
}

pub(super) struct Attackers {
    tasks: JoinSet<Option<Duration>>,
    count: usize,
}

pub(super) struct AttackResult {
    /// Number of attackers that could not connect.
    pub(super) refused: usize,
    /// How long the connection of each of the others lasted.
    pub(super) after: Vec<Duration>,
    /// Number of connections still open at the end.
    pub(super) left: usize,
}

impl Attackers {
    /// Starts `count` attackers, spread over the time `ramp_up`.
    pub(super) fn send(kind: Attack, count: usize, edge: SocketAddr, ramp_up: Duration) -> Self {
        let connecting = Arc::new(Semaphore::new(CONNECTING));
        let (mut tasks, begun) = (JoinSet::new(), Instant::now());
        for number in 0..count {
            let connecting = Arc::clone(&connecting);
            let share = number as f64 / count as f64;
            tasks.spawn(async move {
                sleep_until(begun + ramp_up.mul_f64(share)).await;
                let connected = {
                    let _turn = connecting.acquire().await.ok()?;
                    connect_as(number, edge, kind == Attack::Unread).await.ok()?
                };
                let begun = Instant::now();
                // An error ends the connection as well.
                let _ = attack(kind, connected).await;
                Some(begun.elapsed())
            });
        }
        Self { tasks, count }
    }

    /// Waits at most `within` until all connections are closed; the rest is aborted.
    pub(super) async fn end(mut self, within: Duration) -> AttackResult {
        let deadline = Instant::now() + within;
        let mut ended = AttackResult { refused: 0, after: Vec::new(), left: 0 };
        while let Ok(Some(over)) = tokio::time::timeout_at(deadline, self.tasks.join_next()).await {
            match over {
                Ok(Some(after)) => ended.after.push(after),
                _ => ended.refused += 1,
            }
        }
        ended.left = self.count - ended.refused - ended.after.len();
        ended
    }
}

impl AttackResult {
    /// The longest duration of a connection.
    pub(super) fn longest(&self) -> Duration {
        self.after.iter().max().copied().unwrap_or_default()
    }

    pub(super) fn summary(&self) -> String {
        let shortest = self.after.iter().min().copied().unwrap_or_default();
        format!(
            "{} attackers were closed after {} to {}, {} could not connect, {} stayed to the end",
            self.after.len(),
            in_ms(shortest),
            in_ms(self.longest()),
            self.refused,
            self.left
        )
    }
}

/// Connects from the address of an attacker: 127.0.0.2 and the following ones.
pub(in crate::rig) async fn connect_as(
    number: usize,
    edge: SocketAddr,
    narrow: bool,
) -> std::io::Result<TcpStream> {
    connect(edge, number % ADDRESSES * PER_ADDRESS, narrow.then_some(NARROW_BYTES)).await
}

/// Attacks over a connection until it is closed.
async fn attack(kind: Attack, mut stream: TcpStream) -> std::io::Result<()> {
    match kind {
        Attack::Head => stream.write_all(b"GET /accounts HTTP/1.1\r\nHost: r").await?,
        Attack::Body => {
            let head = "POST /transaction HTTP/1.1\r\nHost: rig\r\nContent-Length: 1000\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            return drip(stream).await;
        }
        Attack::Unread => {
            stream.write_all(LONG.as_bytes()).await?;
            // A client that does not read cannot see the close; an incomplete answer shows it afterwards.
            sleep(STALLED + UNREAD_LONGER).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            if answer.len() >= LONG_BYTES {
                std::future::pending::<()>().await;
            }
            return Ok(());
        }
        Attack::Window => return read_without_window(stream).await,
        Attack::Idle => stream.write_all(SHORT.as_bytes()).await?,
    }
    read_on(&mut stream).await
}

/// Requests long answers with a flow-control window of 0. Answers pings, so that the connection counts as
/// alive.
async fn read_without_window(stream: TcpStream) -> std::io::Result<()> {
    let mut connection = http2::Connection::over(stream, &NO_WINDOW).await?;
    for number in 0..UNREAD_REQUESTS {
        let request = get_request("/openapi.json", &[(AUTHORITY, "x")]);
        connection.send(&Frame::request(2 * number + 1, &request)).await?;
    }
    loop {
        connection.next(GOAWAY).await?;
    }
}

/// Reads until the connection is closed.
async fn read_on(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 1024];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// Writes a byte a second until the answer is there and the connection closed.
async fn drip(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut reading, mut writing) = stream.split();
    let mut pace = interval(Duration::from_secs(1));
    let dripping = async {
        while writing.write_all(b" ").await.is_ok() {
            pace.tick().await;
        }
    };
    let mut bytes = Vec::new();
    tokio::select! {
        read = reading.read_to_end(&mut bytes) => read.map(drop),
        () = dripping => Ok(()),
    }
}
