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
    time::{Duration, Instant},
};

use mesh_testbed::http1::{BodyReader, Connection, Dial};
use tokio::time::timeout;

use super::super::{
    cost::{self, MeasuredProcess},
    meter::{LOAD, Meter, Round},
};

/// How long clients download before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
/// Longest wait of a client for the next bytes.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that a client reads at once.
const READ_BYTES: usize = 512 << 10;

/// Clients that download repeatedly.
pub(super) struct Drain {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Result<(), String>>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Body bytes received, and the clients' processor time, microseconds.
    bytes: AtomicU64,
    cpu_us: AtomicU64,
}

impl Drain {
    /// Starts one client for each path, without a rate limit.
    pub(super) fn start(address: SocketAddr, paths: &[String]) -> Self {
        Self::with_limit(address, paths, None)
    }

    /// Starts one client for each path, with an optional limit in bytes a second.
    pub(super) fn with_limit(address: SocketAddr, paths: &[String], at_most: Option<u32>) -> Self {
        let shared = Arc::<Shared>::default();
        let client = |path: &String| {
            let (path, shared) = (path.clone(), Arc::clone(&shared));
            thread::spawn(move || {
                let mut spent_us = cost::thread_cpu_us();
                while !shared.stop.load(Ordering::Relaxed) {
                    download(address, &path, |piece| {
                        if let Some(at_most) = at_most {
                            thread::sleep(Duration::from_secs_f64(piece.len() as f64 / f64::from(at_most)));
                        }
                        let now_us = cost::thread_cpu_us();
                        shared.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
                        shared.cpu_us.fetch_add(now_us - spent_us, Ordering::Relaxed);
                        spent_us = now_us;
                        !shared.stop.load(Ordering::Relaxed)
                    })?;
                }
                Ok(())
            })
        };
        let clients = paths.iter().map(client).collect();
        Self { shared, clients }
    }

    /// Body bytes received so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Measures the received bytes for `length`.
    pub(super) fn count(&self, watched: &[MeasuredProcess], length: Duration) -> Round {
        thread::sleep(WARM_UP);
        let now = || (self.bytes(), self.shared.cpu_us.load(Ordering::Relaxed));
        let (meter, before) = (Meter::start(watched), now());
        thread::sleep(length);
        let after = now();
        let cpu_us = after.1 - before.1;
        let own_us = vec![(LOAD, cpu_us)];
        Round { amount: after.0 - before.0, spent: meter.stop(cpu_us), own_us, ..Round::default() }
    }

    /// Stops all clients.
    ///
    /// # Errors
    /// When a download failed, or its length was not the announced one.
    pub(super) fn stop(self) -> Result<(), String> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().map_err(|_| "a client died")??;
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
    let drain = Drain::start(address, paths);
    let moved = drain.count(watched, length);
    drain.stop()?;
    if moved.amount == 0 { Err("nothing came".to_owned()) } else { Ok(moved) }
}

/// The length of an export, and the time from its request to its first byte.
///
/// # Errors
/// When the answer is not 200, has no length, or no byte comes.
pub(super) fn first_byte(address: SocketAddr, path: &str) -> Result<(u64, Duration), String> {
    on_this_thread(path, async {
        let connection = connect(address).await?;
        let asked = Instant::now();
        let mut body = request(connection, path).await?;
        if !within(body.next(&mut Vec::new(), READ_BYTES)).await? {
            return Err("no byte came".to_owned());
        }
        let took = asked.elapsed();
        let length = body.head.header("content-length").and_then(|value| value.parse().ok());
        Ok((length.ok_or("the answer has no length")?, took))
    })
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
    on_this_thread(path, async {
        let mut body = request(connect(address).await?, path).await?;
        let mut piece = Vec::new();
        while within(body.next(&mut piece, READ_BYTES)).await? && take(&piece) {}
        Ok(())
    })
}

fn on_this_thread<T>(path: &str, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start a client: {error}"))?;
    runtime.block_on(work).map_err(|why| format!("{path}: {why}"))
}

async fn connect(address: SocketAddr) -> Result<Connection, String> {
    Ok(Connection::over(within(Dial::default().connect(address)).await?))
}

/// Sends a request and reads the head of its answer.
async fn request(mut connection: Connection, path: &str) -> Result<BodyReader, String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    within(connection.send(request.as_bytes())).await?;
    let body = within(connection.head_then_body()).await?;
    if body.head.status == 200 { Ok(body) } else { Err(format!("{:?}", body.head)) }
}

/// Waits for a step of a connection.
async fn within<T>(step: impl Future<Output = std::io::Result<T>>) -> Result<T, String> {
    let done = timeout(TIMEOUT, step).await.map_err(|_| format!("nothing came for {TIMEOUT:?}"))?;
    done.map_err(|error| error.to_string())
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

    fn drained(answer: &'static [u8]) -> Result<Round, String> {
        drain(serve(answer), &["/a".to_owned(), "/b".to_owned()], &[], Duration::from_millis(50))
    }

    #[test]
    fn whole_bodies_count_and_short_ones_fail() {
        let moved = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes").unwrap();
        assert_eq!(moved.amount % 5, 0);
        let short = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbytes").unwrap_err();
        assert!(short.contains("within the body"), "{short}");
        let refused = drained(b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n-").unwrap_err();
        assert!(refused.contains("404"), "{refused}");
    }

    #[test]
    fn the_first_byte_is_one_of_the_body() {
        let address = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbytes");
        assert_eq!(first_byte(address, "/").unwrap().0, 5);
        first_byte(serve(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"), "/").unwrap_err();
    }
}
