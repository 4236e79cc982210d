//! Throughput of the bus server alone: one connection publishes and another one reads, each on its own
//! thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt as _;
use mesh_bus::{Credentials, permissions};
use mesh_launcher::bus::Bus;
use tokio::time::timeout;

use super::{
    super::{comparison::block_on, cost::MeasuredProcess, meter::Round},
    drain::Counted,
};

/// Bytes of a message, as of a chunk of an export.
pub(super) const MESSAGE: usize = 512 << 10;

/// Longest wait for a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Capacities of the client's send queue and of the subscription's queue, messages, as in the bus library.
const UNSENT: usize = 16;
const UNREAD: usize = 2048;

/// Publishes the messages repeatedly for `length` and measures what is received.
pub(super) fn publish(
    bus: &Bus,
    messages: &[Bytes],
    server: &[MeasuredProcess],
    length: Duration,
) -> Result<Round, String> {
    // A subject on which the export service may publish and the edge may subscribe.
    let subject =
        format!("{}.bench.export.{}", permissions::inbox_prefix(permissions::EDGE), std::process::id());
    let (stop, received) = (AtomicBool::new(false), Arc::<Counted>::default());
    let (ready, subscribed) = mpsc::channel();
    thread::scope(|scope| {
        let subscriber = scope.spawn(|| block_on(subscribe(bus, &subject, ready, &received)));
        if subscribed.recv_timeout(TIMEOUT).is_err() {
            return Err(subscriber.join().ok().and_then(Result::err).unwrap_or_default());
        }
        let publisher = scope.spawn(|| block_on(publish_until(bus, &subject, messages, &stop, &received)));
        let round = received.measure("publisher and subscriber", server, length);
        stop.store(true, Ordering::Relaxed);
        publisher.join().map_err(|_| "the publisher panicked")??;
        subscriber.join().map_err(|_| "the subscriber panicked")??;
        Ok(round)
    })
}

/// Publishes the messages, and an empty one at the end.
async fn publish_until(
    bus: &Bus,
    subject: &str,
    messages: &[Bytes],
    stop: &AtomicBool,
    counted: &Counted,
) -> Result<(), String> {
    let (client, mut count) = (connect(bus, "export").await?, counted.work());
    for message in messages.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        client.publish(subject.to_owned(), message.clone()).await.map_err(error_text)?;
        count(0);
    }
    client.publish(subject.to_owned(), Bytes::new()).await.map_err(error_text)?;
    client.flush().await.map_err(error_text)
}

/// Reads messages up to an empty one.
async fn subscribe(
    bus: &Bus,
    subject: &str,
    ready: mpsc::Sender<()>,
    counted: &Counted,
) -> Result<(), String> {
    let (client, mut count) = (connect(bus, permissions::EDGE).await?, counted.work());
    let mut arriving = client.subscribe(subject.to_owned()).await.map_err(error_text)?;
    client.flush().await.map_err(error_text)?;
    let _ = ready.send(());
    loop {
        let message = timeout(TIMEOUT, arriving.next()).await;
        let message = message.map_err(|_| "the bus dropped messages of a reader that was too slow")?;
        match message.ok_or("the bus closed the connection that reads")?.payload.len() {
            0 => return Ok(()),
            bytes => count(bytes),
        }
    }
}

async fn connect(bus: &Bus, user: &str) -> Result<Client, String> {
    let mut options = ConnectOptions::new().client_capacity(UNSENT).subscription_capacity(UNREAD);
    let credentials = bus.config(user, "bench").map_err(error_text)?.credentials;
    if let Some(Credentials::Password { user, password }) = credentials {
        options = options.user_and_password(user, password);
    }
    options.connect(bus.url.as_str()).await.map_err(error_text)
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("the bus alone: {error}")
}
