//! Clients that download and discard the data, each on its own thread.
//!
//! They share the processors with the measured servers and therefore do little work: only the head of an
//! answer is parsed, and the length of its body checked.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::time::timeout;

use super::super::{
    comparison::block_on,
    cost::{self, MeasuredProcess},
    meter::{LOAD, Meter, Round},
};
use crate::rig::clients::download::Download;

/// How long clients download before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
/// Longest wait of a client for the next bytes.
const TIMEOUT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 512 << 10;

/// Bytes, and the processor time of the threads that move them.
#[derive(Default)]
pub(super) struct Counted {
    bytes: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Counted {
    /// Counts the work of the calling thread: bytes, and its processor time since the last call.
    pub(super) fn work(&self) -> impl FnMut(usize) {
        let mut spent_us = cost::thread_us();
        move |bytes| {
            let now_us = cost::thread_us();
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.cpu_ns.fetch_add(((now_us - spent_us) * 1e3) as u64, Ordering::Relaxed);
            spent_us = now_us;
        }
    }

    /// Measures the bytes for `length`, after a while in which they do not count.
    pub(super) fn measure(&self, name: &'static str, watched: &[MeasuredProcess], length: Duration) -> Round {
        thread::sleep(WARM_UP);
        let now = || (self.bytes.load(Ordering::Relaxed), self.cpu_ns.load(Ordering::Relaxed));
        let (meter, before) = (Meter::start(watched), now());
        thread::sleep(length);
        let after = now();
        let cpu_us = (after.1 - before.1) as f64 / 1e3;
        let own = Some((name, cpu_us));
        Round { amount: after.0 - before.0, spent: meter.stop(cpu_us), own, ..Round::default() }
    }
}

/// Clients that download repeatedly.
pub(super) struct Drain {
    stop: Arc<AtomicBool>,
    pub(super) received: Arc<Counted>,
    clients: Vec<JoinHandle<Result<(), String>>>,
}

impl Drain {
    /// Starts one client for each path, with an optional limit in bytes a second.
    pub(super) fn start(address: SocketAddr, paths: &[String], at_most: Option<u32>) -> Self {
        let (stop, received) = (Arc::<AtomicBool>::default(), Arc::<Counted>::default());
        let client = |path: &String| {
            let (path, stop, received) = (path.clone(), Arc::clone(&stop), Arc::clone(&received));
            thread::spawn(move || {
                let mut count = received.work();
                while !stop.load(Ordering::Relaxed) {
                    download(address, &path, |piece| {
                        if let Some(at_most) = at_most {
                            thread::sleep(Duration::from_secs_f64(piece.len() as f64 / f64::from(at_most)));
                        }
                        count(piece.len());
                        !stop.load(Ordering::Relaxed)
                    })?;
                }
                Ok(())
            })
        };
        let clients = paths.iter().map(client).collect();
        Self { stop, received, clients }
    }

    /// Stops all clients.
    ///
    /// # Errors
    /// When a download failed, or its length was not the announced one.
    pub(super) fn stop(self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        Ok(())
    }
}

/// Downloads all paths concurrently for `length`.
pub(super) fn drain(
    address: SocketAddr,
    paths: &[String],
    watched: &[MeasuredProcess],
    length: Duration,
) -> Result<Round, String> {
    let drain = Drain::start(address, paths, None);
    let moved = drain.received.measure(LOAD, watched, length);
    drain.stop()?;
    if moved.amount == 0 { Err("nothing came".to_owned()) } else { Ok(moved) }
}

/// Requests an export and waits for its first byte; returns its length.
///
/// # Errors
/// When the answer is not 200, has no length, or no byte comes.
pub(super) async fn first_byte(address: SocketAddr, path: &str) -> Result<u64, String> {
    let mut body = request(address, path).await?;
    if !within(body.next(&mut Vec::new(), READ_BYTES)).await? {
        return Err("no byte came".to_owned());
    }
    let length = body.head.header("content-length").and_then(|value| value.parse().ok());
    length.ok_or_else(|| "the answer has no length".to_owned())
}

/// Downloads a path and passes the body to `take` in pieces, as long as that returns true.
///
/// # Errors
/// When the answer is not 200, breaks off, or pauses longer than the timeout.
pub(super) fn download(
    address: SocketAddr,
    path: &str,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), String> {
    block_on(async {
        let (mut body, mut piece) = (request(address, path).await?, Vec::new());
        while within(body.next(&mut piece, READ_BYTES)).await? && take(&piece) {}
        Ok(())
    })
}

/// Sends a request over a new connection and reads the head of its answer.
async fn request(address: SocketAddr, path: &str) -> Result<Download, String> {
    let download = within(Download::open(address, path, None, None)).await?;
    if download.head.status == 200 { Ok(download) } else { Err(format!("{path}: {:?}", download.head)) }
}

/// Waits for a step of a download.
async fn within<T>(step: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout(TIMEOUT, step).await.unwrap_or_else(|_| Err(format!("nothing came for {TIMEOUT:?}")))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// A server of one answer for each connection.
    fn serve(answer: &'static [u8]) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                // Fails when the client has disconnected.
                let _ = stream.write_all(answer);
            }
        });
        address
    }

    #[test]
    fn whole_bodies_count_and_short_ones_fail() {
        let drained = |answer| {
            drain(serve(answer), &["/a".to_owned(), "/b".to_owned()], &[], Duration::from_millis(50))
        };
        let moved = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes").unwrap();
        assert!(moved.amount > 0 && moved.amount.is_multiple_of(5));
        let short = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbytes").unwrap_err();
        assert!(short.contains("within the body"), "{short}");
        let refused = drained(b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n-").unwrap_err();
        assert!(refused.contains("404"), "{refused}");
    }
}
