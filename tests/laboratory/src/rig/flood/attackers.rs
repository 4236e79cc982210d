//! Clients that attack, each a connection and what it does on it until the edge is rid of it.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use mesh_testbed::http1::Dial;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::http2;
use crate::rig::report::in_ms;

/// How long a client that takes nothing may last (contract section 7).
pub(super) const STALLED: Duration = Duration::from_secs(120);
/// How many connect at the same time: more would only fill the system's queue.
const CONNECTING: usize = 256;
/// Addresses that attackers come from; the load has another one.
const ADDRESSES: usize = 4;
/// What a client holds that reads nothing.
const NARROW_BYTES: u32 = 4096;
/// A long answer of the edge's own, as it is kept.
const LONG: &str = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: rig\r\nAccept-Encoding: gzip\r\n\r\n";
/// It is longer than this.
const LONG_BYTES: usize = 400_000;
/// How long an answer is left unread beyond the edge's patience.
pub(super) const UNREAD_LONGER: Duration = Duration::from_secs(5);
const SHORT: &str = "GET /health HTTP/1.1\r\nHost: rig\r\n\r\n";

/// What an attacker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Half a head.
    Head,
    /// Nothing.
    Silent,
    /// A byte of a body each second.
    Body,
    /// It asks for much and reads nothing.
    Unread,
    /// The same over HTTP/2, by a window of nothing.
    Window,
    /// It asks once and keeps the connection.
    Idle,
    /// It takes back what it asks, and comes again when it is sent away.
    Reset,
}

/// Attackers at work.
pub(super) struct Attackers {
    tasks: JoinSet<Option<Duration>>,
    count: usize,
}

/// What became of attackers.
pub(super) struct Ended {
    /// How many could not connect or were turned away at once.
    pub(super) refused: usize,
    /// How long each of the others lasted.
    pub(super) after: Vec<Duration>,
    /// How many are there still.
    pub(super) left: usize,
}

impl Attackers {
    /// Sends so many, one after the other within this time.
    pub(super) fn send(kind: Kind, count: usize, edge: SocketAddr, coming: Duration) -> Self {
        let connecting = Arc::new(Semaphore::new(CONNECTING));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let connecting = Arc::clone(&connecting);
            let share = number as f64 / count as f64;
            tasks.spawn(async move {
                sleep(coming.mul_f64(share)).await;
                let connected = {
                    let _turn = connecting.acquire().await.ok()?;
                    connect(kind, source(number), edge).await.ok()?
                };
                let begun = Instant::now();
                // However it ends, it is over.
                let _ = attack(kind, connected).await;
                Some(begun.elapsed())
            });
        }
        Self { tasks, count }
    }

    /// Waits until all are gone, but not longer than this; the rest leaves then.
    pub(super) async fn end(mut self, within: Duration) -> Ended {
        let deadline = Instant::now() + within;
        let mut ended = Ended { refused: 0, after: Vec::new(), left: 0 };
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

impl Ended {
    /// How long the last one lasted.
    pub(super) fn longest(&self) -> Duration {
        self.after.iter().max().copied().unwrap_or_default()
    }

    /// It in a few words.
    pub(super) fn told(&self) -> String {
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

/// Where an attacker comes from: 127.0.0.2 and those behind it.
pub(super) fn source(number: usize) -> IpAddr {
    let last = u8::try_from(number % ADDRESSES).unwrap_or_default();
    Ipv4Addr::new(127, 0, 0, 2 + last).into()
}

/// Connects from an address of this machine.
pub(super) async fn connect_from(
    source: IpAddr,
    edge: SocketAddr,
    narrow: bool,
) -> std::io::Result<TcpStream> {
    let receive_buffer = narrow.then_some(NARROW_BYTES);
    Dial { source: Some(source), receive_buffer }.connect(edge).await
}

async fn connect(kind: Kind, source: IpAddr, edge: SocketAddr) -> std::io::Result<TcpStream> {
    connect_from(source, edge, kind == Kind::Unread).await
}

/// Attacks over a connection until it is closed.
async fn attack(kind: Kind, mut stream: TcpStream) -> std::io::Result<()> {
    match kind {
        Kind::Head => stream.write_all(b"GET /accounts HTTP/1.1\r\nHost: r").await?,
        Kind::Silent => {}
        Kind::Body => {
            let head = "POST /transaction HTTP/1.1\r\nHost: rig\r\nContent-Length: 1000\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            return drip(stream).await;
        }
        Kind::Unread => {
            stream.write_all(LONG.as_bytes()).await?;
            // Who reads nothing cannot see that it was closed; what is missing of the answer tells it later.
            sleep(STALLED + UNREAD_LONGER).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            if answer.len() >= LONG_BYTES {
                std::future::pending::<()>().await;
            }
            return Ok(());
        }
        Kind::Window => return http2::hold_window(stream).await,
        Kind::Idle => stream.write_all(SHORT.as_bytes()).await?,
        Kind::Reset => return http2::reset_on(stream).await,
    }
    read_on(&mut stream).await
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
    let dripping = async {
        while writing.write_all(b" ").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let mut bytes = Vec::new();
    tokio::select! {
        read = reading.read_to_end(&mut bytes) => read.map(drop),
        () = dripping => Ok(()),
    }
}
