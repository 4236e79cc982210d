//! The load of a round: a closed loop of connections, all on one thread.
//!
//! It shares the processors with the measured servers and therefore does little work: one request buffer and
//! one answer buffer per connection, and only status and length of an answer are read.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    num::NonZeroUsize,
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mesh_testbed::http1::Head;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    task::LocalSet,
    time::{sleep, sleep_until, timeout},
};

use super::{
    cost::{self, MeasuredProcess},
    meter::{LOAD, Meter, Round},
};

/// How long the load runs before the measurement.
const WARM_UP: Duration = Duration::from_millis(400);
/// Timeout of the last answers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Initial size of the answer buffer, which grows for longer answers.
const ANSWER_BYTES: usize = 8 << 10;

/// Numbers of requests prepared: per second and connection, per second at most, and in all at most. More than
/// any side answers; a round ends when none is left.
const PREPARED_A_SECOND: u64 = 10_000;
const PREPARED_A_SECOND_AT_MOST: u64 = 25_000;
const PREPARED_AT_MOST: u64 = 300_000;

/// The load on one address.
#[derive(Clone)]
pub(super) struct Load {
    /// Address of the HTTP server.
    pub(super) address: SocketAddr,
    /// The requests.
    pub(super) requests: Requests,
    /// Number of connections, each with one request at a time.
    pub(super) connections: u64,
    /// Length of the measurement.
    pub(super) length: Duration,
    /// Time from one request of a connection to its next one; `None` sends the next one after the answer.
    pub(super) period: Option<Duration>,
}

/// The requests of a load.
#[derive(Clone)]
pub(super) enum Requests {
    /// Paths to get, of which each request takes one at random.
    Paths(Arc<[String]>),
    /// Whole requests, each sent once. They are prepared before the round begins.
    Prepared {
        /// Makes the next one.
        make: Arc<dyn Fn() -> Vec<u8> + Send + Sync>,
        /// Text that every answer must contain.
        expects: &'static str,
    },
}

impl Load {
    /// Requests for paths in a closed loop: each connection sends the next one after the answer.
    pub(super) fn paths(
        address: SocketAddr,
        paths: impl Into<Arc<[String]>>,
        connections: u64,
        length: Duration,
    ) -> Self {
        Self { address, requests: Requests::Paths(paths.into()), connections, length, period: None }
    }

    /// Runs one round on the calling thread.
    ///
    /// # Errors
    /// When an answer is not 200 or lacks the required text, or a connection breaks.
    pub(super) fn run(&self, watched: &[MeasuredProcess]) -> Result<Round, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start the load: {error}"))?;
        let prepared = self.prepared();
        LocalSet::new().block_on(&runtime, self.round(watched, prepared))
    }

    /// Prepares the requests on all cores.
    fn prepared(&self) -> Vec<Vec<u8>> {
        let Requests::Prepared { make, .. } = &self.requests else { return Vec::new() };
        let seconds = (WARM_UP + self.length).as_secs_f64();
        let a_second = (PREPARED_A_SECOND * self.connections).min(PREPARED_A_SECOND_AT_MOST);
        let count = ((a_second as f64 * seconds) as u64).min(PREPARED_AT_MOST);
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get) as u64;
        thread::scope(|scope| {
            let some = || (0..count.div_ceil(cores)).map(|_| make()).collect::<Vec<_>>();
            let making: Vec<_> = (0..cores).map(|_| scope.spawn(some)).collect();
            // Requests of a thread that panicked are missing.
            making.into_iter().filter_map(|made| made.join().ok()).flatten().collect()
        })
    }

    async fn round(&self, watched: &[MeasuredProcess], prepared: Vec<Vec<u8>>) -> Result<Round, String> {
        let shared = Rc::new(Shared { prepared: prepared.into(), ..Shared::default() });
        let drivers: Vec<_> = (0..self.connections)
            .map(|seed| tokio::task::spawn_local(drive(self.clone(), Rc::clone(&shared), seed)))
            .collect();
        sleep(WARM_UP).await;
        let (meter, own) = (Meter::start(watched), cost::thread_cpu_us());
        shared.counts.set(true);
        // Ends early when no request is left or one has failed.
        let _ = timeout(self.length, shared.ended.notified()).await;
        shared.counts.set(false);
        let load_cpu_us = cost::thread_cpu_us() - own;
        let spent = meter.stop(load_cpu_us);
        shared.stop.set(true);
        let ended = timeout(TIMEOUT, join_all(drivers)).await.map_err(|_| "a request was not answered")?;
        for driver in ended {
            driver.map_err(|error| error.to_string())??;
        }
        let took_ms = shared.took_ms.take();
        Ok(Round { amount: took_ms.len() as u64, took_ms, spent, own_us: vec![(LOAD, load_cpu_us)] })
    }
}

/// What the connections of a round share.
#[derive(Default)]
struct Shared {
    counts: Cell<bool>,
    stop: Cell<bool>,
    took_ms: RefCell<Vec<f64>>,
    /// Prepared requests that are not sent yet.
    prepared: RefCell<Vec<Vec<u8>>>,
    /// Notified when a connection ends.
    ended: Notify,
}

/// Drives one connection until the round is over.
async fn drive(load: Load, shared: Rc<Shared>, seed: u64) -> Result<(), String> {
    let driven = send_requests(&load, &shared, seed).await;
    shared.ended.notify_one();
    driven
}

async fn send_requests(load: &Load, shared: &Shared, seed: u64) -> Result<(), String> {
    let lost = |error: std::io::Error| format!("a connection to {} broke: {error}", load.address);
    let mut stream = TcpStream::connect(load.address).await.map_err(lost)?;
    stream.set_nodelay(true).map_err(lost)?;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut request = Vec::with_capacity(256);
    let mut answer = vec![0; ANSWER_BYTES];
    // Connections start with different offsets within the period.
    let turn = seed as f64 / load.connections as f64;
    let mut due = Instant::now() + load.period.unwrap_or_default().mul_f64(turn);
    while !shared.stop.get() {
        let mut is_late = false;
        if let Some(period) = load.period {
            due += period;
            is_late = Instant::now() > due;
            sleep_until(due.into()).await;
        }
        match &load.requests {
            Requests::Paths(paths) => {
                let path = &paths[random.random_range(0..paths.len())];
                request.clear();
                for part in ["GET ", path, " HTTP/1.1\r\nHost: bench\r\n\r\n"] {
                    request.extend_from_slice(part.as_bytes());
                }
            }
            Requests::Prepared { .. } => match shared.prepared.borrow_mut().pop() {
                Some(made) => request = made,
                None => return Ok(()),
            },
        }
        let counts = shared.counts.get();
        // A late answer has delayed this request: its latency counts from when it was due.
        let begun = if is_late { due } else { Instant::now() };
        stream.write_all(&request).await.map_err(lost)?;
        let answered = read_answer(&mut stream, &mut answer).await;
        let length = answered.map_err(|why| format!("{}: {why}", line_of(&request)))?;
        if counts && shared.counts.get() {
            shared.took_ms.borrow_mut().push(begun.elapsed().as_secs_f64() * 1e3);
        }
        if let Requests::Prepared { expects, .. } = &load.requests
            && !answer[..length].windows(expects.len()).any(|part| part == expects.as_bytes())
        {
            return Err(String::from_utf8_lossy(&answer[..length]).into_owned());
        }
    }
    Ok(())
}

/// The first line of a request.
fn line_of(request: &[u8]) -> String {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}

/// Reads one whole answer and returns its length.
async fn read_answer(stream: &mut TcpStream, answer: &mut Vec<u8>) -> Result<usize, String> {
    let mut filled = 0;
    loop {
        let room = answer.get_mut(filled..).unwrap_or_default();
        let read = stream.read(room).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("the connection was closed".to_owned());
        }
        filled += read;
        let Some(length) = whole_length(&answer[..filled])? else { continue };
        if filled == length {
            return Ok(length);
        }
        if filled > length {
            return Err("more was answered than was asked".to_owned());
        }
        if length > answer.len() {
            answer.resize(length, 0);
        }
    }
}

/// The length of an answer with its head, or `None` as long as the head is not complete.
fn whole_length(answer: &[u8]) -> Result<Option<usize>, String> {
    let Some(head) = Head::parse(answer)? else { return Ok(None) };
    if head.status != 200 {
        return Err(String::from_utf8_lossy(answer).into_owned());
    }
    let body = head.content_length()?.ok_or("the answer has no content-length")?;
    Ok(Some(head.bytes + usize::try_from(body).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::*;

    #[test]
    fn the_length_of_an_answer_is_known_when_its_head_is_there() {
        let head = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\n";
        for cut in 0..head.len() {
            assert_eq!(whole_length(&head.as_bytes()[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(whole_length(format!("{head}he").as_bytes()), Ok(Some(head.len() + 5)));
        whole_length(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err();
        whole_length(b"HTTP/1.1 200 OK\r\nx: 5\r\n\r\n").unwrap_err();
    }

    /// A server of one connection that sends its answers in small pieces.
    fn serve(answer: &'static [u8]) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = [0; 1024];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                for piece in answer.chunks(37) {
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                }
            }
        });
        address
    }

    fn round_of(answer: &'static [u8], requests: Requests) -> Result<Round, String> {
        // Slow enough that the prepared requests last for the round.
        let period = matches!(requests, Requests::Prepared { .. }).then_some(Duration::from_millis(1));
        let (address, length) = (serve(answer), Duration::from_millis(100));
        Load { requests, period, ..Load::paths(address, [], 1, length) }.run(&[])
    }

    fn round(answer: &'static [u8]) -> Result<Round, String> {
        round_of(answer, Requests::Paths(Arc::from(["/a".to_owned(), "/b".to_owned()])))
    }

    #[test]
    fn a_round_counts_whole_answers_and_fails_with_the_first_that_is_not_200() {
        let round_of_fine =
            round(b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n123456789012345678901234567890").unwrap();
        assert!(round_of_fine.rate() > 10.0, "{}", round_of_fine.rate());
        assert!(round_of_fine.quantile_ms(0.5) > 0.0);
        assert!(round_of_fine.quantile_ms(0.5) <= round_of_fine.quantile_ms(1.0));
        let refused = round(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno").unwrap_err();
        assert!(refused.contains("503"), "{refused}");
    }

    #[test]
    fn prepared_requests_are_sent_once_and_every_answer_must_contain_the_expected_text() {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let requests = |expects| Requests::Prepared {
            make: Arc::new(|| {
                MADE.fetch_add(1, Ordering::Relaxed);
                b"POST / HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n".to_vec()
            }),
            expects,
        };
        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 31\r\n\r\n{\"success\":true,\"code\":0,\"a\":0}";
        let found = round_of(fine, requests("\"code\":0")).unwrap();
        assert!(found.rate() > 10.0 && found.amount <= MADE.load(Ordering::Relaxed));
        let refused = round_of(fine, requests("\"code\":7")).unwrap_err();
        assert!(refused.contains("success"), "{refused}");
    }
}
