//! Throughput of the bus server alone: one connection publishes and another one reads, each on its own
//! thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt as _;
use mesh_bus::{Credentials, permissions};
use mesh_launcher::bus::Bus;
use tokio::time::timeout;

use super::super::{
    cost::{self, MeasuredProcess},
    meter::{Meter, Round},
};

/// Bytes of a message, as of a chunk of an export.
pub(super) const MESSAGE: usize = 512 << 10;

const WARM_UP: Duration = Duration::from_millis(500);
/// Longest wait for a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Capacities of the client's send queue and of the subscription's queue, messages, as in the bus library.
const UNSENT: usize = 16;
const UNREAD: usize = 2048;

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    published: AtomicU64,
    received: AtomicU64,
    publisher_us: AtomicU64,
    subscriber_us: AtomicU64,
}

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
    let shared = Arc::<Shared>::default();
    let (ready_sender, subscribed) = std::sync::mpsc::channel();
    let subscriber = {
        let (bus, subject, shared) = (bus.clone(), subject.clone(), Arc::clone(&shared));
        thread::spawn(move || {
            block_on(async {
                let client = connect(&bus, permissions::EDGE).await?;
                let mut arriving = client.subscribe(subject).await.map_err(error_text)?;
                client.flush().await.map_err(error_text)?;
                let _ = ready_sender.send(());
                read(&mut arriving, &shared).await
            })
        })
    };
    if subscribed.recv_timeout(TIMEOUT).is_err() {
        return Err(join(subscriber).err().unwrap_or_else(|| "the subscriber is missing".to_owned()));
    }
    let publisher = {
        let (bus, messages, shared) = (bus.clone(), messages.to_vec(), Arc::clone(&shared));
        thread::spawn(move || {
            block_on(async {
                let client = connect(&bus, "export").await?;
                for message in messages.iter().cycle() {
                    if shared.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    client.publish(subject.clone(), message.clone()).await.map_err(error_text)?;
                    shared.published.fetch_add(message.len() as u64, Ordering::Relaxed);
                    shared.publisher_us.store(cost::thread_cpu_us(), Ordering::Relaxed);
                }
                client.flush().await.map_err(error_text)
            })
        })
    };
    thread::sleep(WARM_UP);
    let now = || {
        [&shared.received, &shared.publisher_us, &shared.subscriber_us].map(|one| one.load(Ordering::Relaxed))
    };
    let (meter, before) = (Meter::start(server), now());
    thread::sleep(length);
    let after = now();
    let [amount, publisher_us, subscriber_us] = std::array::from_fn(|place| after[place] - before[place]);
    let spent = meter.stop(publisher_us + subscriber_us);
    shared.stop.store(true, Ordering::Relaxed);
    join(publisher)?;
    join(subscriber)?;
    let own_us = vec![("publisher", publisher_us), ("subscriber", subscriber_us)];
    Ok(Round { amount, spent, own_us, ..Round::default() })
}

/// Reads until all published messages have been received.
async fn read(arriving: &mut async_nats::Subscriber, shared: &Shared) -> Result<(), String> {
    let mut last = Instant::now();
    loop {
        let stopped = shared.stop.load(Ordering::Relaxed);
        if stopped && shared.received.load(Ordering::Relaxed) >= shared.published.load(Ordering::Relaxed) {
            return Ok(());
        }
        match timeout(Duration::from_millis(100), arriving.next()).await {
            Ok(Some(message)) => {
                shared.received.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
                shared.subscriber_us.store(cost::thread_cpu_us(), Ordering::Relaxed);
                last = Instant::now();
            }
            Ok(None) => return Err("the bus closed the connection that reads".to_owned()),
            Err(_) if last.elapsed() > TIMEOUT => {
                return Err("the bus dropped messages of a reader that was too slow".to_owned());
            }
            Err(_) => {}
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

fn block_on(what: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(error_text)?.block_on(what)
}

fn join(thread: thread::JoinHandle<Result<(), String>>) -> Result<(), String> {
    thread.join().map_err(|_| "a thread died")?
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("the bus alone: {error}")
}
