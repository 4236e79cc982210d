//! Clients that download and discard the data, each on its own thread.
//!
//! They share the processors with the measured servers and therefore do little work: only the head of an
//! answer is parsed, and the length of its body checked.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mesh_testbed::http1::Head;

use super::super::{
    cost::{self, MeasuredProcess},
    meter::Meter,
    transfer::TransferRound,
};

/// How long clients download before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
/// Read timeout of a client.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that a client reads at once.
const READ_BYTES: usize = 512 << 10;
const HEAD_AT_MOST: usize = 16 << 10;

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
                while !shared.stop.load(Ordering::Relaxed) {
                    download(address, &path, at_most, &shared)?;
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
    pub(super) fn count(&self, watched: &[MeasuredProcess], length: Duration) -> TransferRound {
        thread::sleep(WARM_UP);
        let now = || (self.bytes(), self.shared.cpu_us.load(Ordering::Relaxed));
        let (meter, before) = (Meter::start(watched), now());
        thread::sleep(length);
        let after = now();
        let cpu_us = after.1 - before.1;
        TransferRound {
            amount: after.0 - before.0,
            spent: meter.stop(cpu_us),
            own_us: vec![("load", cpu_us)],
        }
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
) -> Result<TransferRound, String> {
    let drain = Drain::start(address, paths);
    let moved = drain.count(watched, length);
    drain.stop()?;
    if moved.amount == 0 { Err("nothing came".to_owned()) } else { Ok(moved) }
}

/// The length of an export, and the time from its request to its first byte.
pub(super) fn first_byte(address: SocketAddr, path: &str) -> Result<(u64, Duration), String> {
    let mut stream = connect(address)?;
    let asked = Instant::now();
    let (length, body) = ask(&mut stream, path)?;
    if body.is_empty() {
        let read = stream.read(&mut [0]).map_err(|error| broken(path, &error))?;
        if read == 0 {
            return Err(format!("{path}: no byte came"));
        }
    }
    Ok((length, asked.elapsed()))
}

fn download(address: SocketAddr, path: &str, at_most: Option<u32>, shared: &Shared) -> Result<(), String> {
    let mut stream = connect(address)?;
    let (length, body) = ask(&mut stream, path)?;
    let mut left = length.saturating_sub(body.len() as u64);
    shared.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    let mut taken = vec![0; READ_BYTES];
    let mut spent_us = cost::thread_cpu_us();
    while left > 0 && !shared.stop.load(Ordering::Relaxed) {
        let read = stream.read(&mut taken).map_err(|error| broken(path, &error))? as u64;
        if read == 0 || read > left {
            return Err(format!("{path}: {left} bytes were left, {read} came"));
        }
        left -= read;
        if let Some(at_most) = at_most {
            thread::sleep(Duration::from_secs_f64(read as f64 / f64::from(at_most)));
        }
        let now_us = cost::thread_cpu_us();
        shared.bytes.fetch_add(read, Ordering::Relaxed);
        shared.cpu_us.fetch_add(now_us - spent_us, Ordering::Relaxed);
        spent_us = now_us;
    }
    Ok(())
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let connected = TcpStream::connect(address).and_then(|stream| {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    connected.map_err(|error| format!("cannot connect to {address}: {error}"))
}

/// Sends a request; returns the length of the body, and the part of it that came with the head.
fn ask(stream: &mut TcpStream, path: &str) -> Result<(u64, Vec<u8>), String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| broken(path, &error))?;
    let mut answer = Vec::with_capacity(HEAD_AT_MOST);
    loop {
        let filled = answer.len();
        answer.resize(HEAD_AT_MOST, 0);
        let read = stream.read(&mut answer[filled..]).map_err(|error| broken(path, &error))?;
        answer.truncate(filled + read);
        if let Some(head) = Head::parse(&answer)? {
            return match (head.status, head.content_length()?) {
                (200, Some(length)) => {
                    let end = head.bytes;
                    Ok((length, answer.split_off(end)))
                }
                _ => Err(format!("{path}: {}", String::from_utf8_lossy(&answer))),
            };
        }
        if read == 0 || answer.len() >= HEAD_AT_MOST {
            return Err(format!("{path}: the answer is no HTTP"));
        }
    }
}

fn broken(path: &str, error: &std::io::Error) -> String {
    format!("{path}: the connection broke: {error}")
}

#[cfg(test)]
mod tests {
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

    fn drained(answer: &'static [u8]) -> Result<TransferRound, String> {
        drain(serve(answer), &["/a".to_owned(), "/b".to_owned()], &[], Duration::from_millis(50))
    }

    #[test]
    fn whole_bodies_count_and_short_ones_fail() {
        let moved = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes").unwrap();
        assert_eq!(moved.amount % 5, 0);
        let short = drained(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbytes").unwrap_err();
        assert!(short.contains("1 bytes were left"), "{short}");
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
