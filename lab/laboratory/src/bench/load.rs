//! The load of a round: clients on one thread, each with one request at a time. It shares the processors with the
//! measured servers and therefore does little work.
//!
//! A client of HTTP/1.1 has one buffer for requests and one for answers, and reads only status and length of an answer.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all, stream};
use mesh_testbed::{
    TlsClient,
    http1::{Dial, Head},
};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::Notify,
    task::LocalSet,
    time::{sleep, sleep_until, timeout},
};

use super::{
    comparison::block_on,
    cost::{self, MeasuredProcess},
    meter::{LOAD, Meter, Round},
};
use crate::watches::OPENED_AT_ONCE;

/// How long the load runs before the measurement.
pub(super) const WARM_UP: Duration = Duration::from_millis(400);
/// Timeout of the last answers.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) trait Client: AsyncFnMut() -> Result<bool, String> + 'static {}

impl<C: AsyncFnMut() -> Result<bool, String> + 'static> Client for C {}

/// How many clients send how often.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Number of clients, each with one request at a time.
    pub(super) clients: u64,
    pub(super) length: Duration,
    /// Time from one request of a client to its next one; `None` sends the next one after the answer.
    pub(super) period: Option<Duration>,
}

impl Pace {
    /// Clients that send the next request after the answer.
    pub(super) fn closed(clients: u64, length: Duration) -> Self {
        Self { clients, length, period: None }
    }

    /// Runs one round on the calling thread with clients that are connected by their numbers. Each call of a client
    /// sends its next request and waits for the answer; `false`: there is no request left.
    pub(super) fn run<C: Client, F: Future<Output = Result<C, String>>>(
        self,
        watched: &[MeasuredProcess],
        connect: impl Fn(u64) -> F,
    ) -> Result<Round, String> {
        let load = async {
            let opening = stream::iter((0..self.clients).map(connect)).buffer_unordered(OPENED_AT_ONCE);
            let clients: Vec<C> = opening.try_collect().await?;
            let shared = Rc::<Shared>::default();
            let drive = |(number, client)| self.drive(client, number as f64, Rc::clone(&shared));
            let drivers: Vec<_> =
                clients.into_iter().enumerate().map(drive).map(tokio::task::spawn_local).collect();
            sleep(WARM_UP).await;
            let (meter, before_us) = (Meter::start(watched), cost::thread_us());
            shared.counts.set(true);
            // Ends early when no request is left or one has failed.
            let _ = timeout(self.length, shared.ended.notified()).await;
            shared.counts.set(false);
            let own_us = cost::thread_us() - before_us;
            let spent = meter.stop(own_us);
            shared.stop.set(true);
            let ended =
                timeout(TIMEOUT, join_all(drivers)).await.map_err(|_| "a request was not answered")?;
            for driver in ended {
                driver.map_err(|error| error.to_string())??;
            }
            let took_ms = shared.took_ms.take();
            Ok(Round { amount: took_ms.len() as u64, took_ms, spent, own: Some((LOAD, own_us)) })
        };
        block_on(LocalSet::new().run_until(load))
    }

    /// Drives one client until the round is over. Clients start with different offsets within the period.
    async fn drive<C: Client>(self, mut client: C, number: f64, shared: Rc<Shared>) -> Result<(), String> {
        let turn = number / self.clients as f64;
        let mut due = Instant::now() + self.period.unwrap_or_default().mul_f64(turn);
        while !shared.stop.get() {
            let mut is_late = false;
            if let Some(period) = self.period {
                due += period;
                is_late = Instant::now() > due;
                sleep_until(due.into()).await;
            }
            let counts = shared.counts.get();
            // A late answer has delayed this request: its latency counts from when it was due.
            let begun = if is_late { due } else { Instant::now() };
            let called = client().await;
            if called != Ok(true) {
                shared.ended.notify_one();
                return called.map(|_| ());
            }
            if counts && shared.counts.get() {
                shared.took_ms.borrow_mut().push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Shared {
    counts: Cell<bool>,
    stop: Cell<bool>,
    took_ms: RefCell<Vec<f64>>,
    /// Notified when a client ends early.
    ended: Notify,
}

/// Initial size of the answer buffer, which grows for longer answers.
const ANSWER_BYTES: usize = 8 << 10;

/// Numbers of requests prepared: per second and connection, per second at most, and in all at most. More than
/// any side answers; a round ends when none is left.
const PREPARED_A_SECOND: u64 = 10_000;
const PREPARED_A_SECOND_AT_MOST: u64 = 25_000;
const PREPARED_AT_MOST: u64 = 300_000;

/// The load on a server of HTTP.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) address: SocketAddr,
    pub(super) requests: Requests,
    pub(super) pace: Pace,
    /// The file of the authority to trust; `None` = without TLS.
    pub(super) ca: Option<PathBuf>,
    /// Whether each request has a connection of its own.
    pub(super) reconnects: bool,
}

#[derive(Clone)]
pub(super) enum Requests {
    /// Paths to get, of which each request takes one at random.
    Paths(Arc<[String]>),
    /// The same, and keys, of which each request takes one at random, too.
    Keyed(Arc<[String]>, Arc<[String]>),
    /// Whole requests, each sent once. They are prepared before the round begins.
    Prepared {
        make: Arc<dyn Fn() -> Vec<u8> + Send + Sync>,
        /// Text that every answer must contain.
        expects: &'static str,
    },
}

impl Load {
    /// A load without TLS on persistent connections.
    pub(super) fn new(address: SocketAddr, requests: Requests, pace: Pace) -> Self {
        Self { address, requests, pace, ca: None, reconnects: false }
    }

    /// Runs one round on the calling thread.
    ///
    /// # Errors
    /// When an answer is not 200 or lacks the required text, or a connection breaks.
    pub(super) fn run(&self, watched: &[MeasuredProcess]) -> Result<Round, String> {
        let prepared = Rc::new(RefCell::new(self.prepared()));
        self.pace.run(watched, async |number| {
            let mut client = HttpClient::connect(self.clone(), Rc::clone(&prepared), number).await?;
            Ok(async move || client.call().await)
        })
    }

    fn prepared(&self) -> Vec<Vec<u8>> {
        let Requests::Prepared { make, .. } = &self.requests else { return Vec::new() };
        let seconds = (WARM_UP + self.pace.length).as_secs_f64();
        let a_second = (PREPARED_A_SECOND * self.pace.clients).min(PREPARED_A_SECOND_AT_MOST);
        let count = ((a_second as f64 * seconds) as u64).min(PREPARED_AT_MOST);
        (0..count).map(|_| make()).collect()
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

struct HttpClient {
    load: Load,
    stream: Option<Box<dyn Stream>>,
    /// Prepared requests that are not sent yet.
    prepared: Rc<RefCell<Vec<Vec<u8>>>>,
    random: SmallRng,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl HttpClient {
    async fn connect(load: Load, prepared: Rc<RefCell<Vec<Vec<u8>>>>, number: u64) -> Result<Self, String> {
        let stream = if load.reconnects { None } else { Some(open(&load).await?) };
        let (random, request) = (SmallRng::seed_from_u64(number), Vec::with_capacity(256));
        Ok(Self { load, stream, prepared, random, request, answer: vec![0; ANSWER_BYTES] })
    }

    /// Sends the request and reads its whole answer; returns the length of the answer.
    async fn exchange(&mut self) -> Result<usize, String> {
        let broken = |error: std::io::Error| format!("the connection broke: {error}");
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => open(&self.load).await?,
        };
        stream.write_all(&self.request).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let mut filled = 0;
        loop {
            let room = self.answer.get_mut(filled..).unwrap_or_default();
            let read = stream.read(room).await.map_err(broken)?;
            if read == 0 {
                return Err("the connection was closed".to_owned());
            }
            filled += read;
            let Some(length) = whole_length(&self.answer[..filled])? else { continue };
            if filled == length {
                self.stream = (!self.load.reconnects).then_some(stream);
                return Ok(length);
            }
            if filled > length {
                return Err("more was answered than was asked".to_owned());
            }
            if length > self.answer.len() {
                self.answer.resize(length, 0);
            }
        }
    }

    /// Writes a request for one of these paths, with one of these keys if there are any.
    fn prepare(&mut self, paths: &[String], keys: &[String]) {
        let path = &paths[self.random.random_range(0..paths.len())];
        self.request.clear();
        let mut write = |part: &str| self.request.extend_from_slice(part.as_bytes());
        ["GET ", path, " HTTP/1.1\r\nHost: bench\r\n"].into_iter().for_each(&mut write);
        if !keys.is_empty() {
            let key = &keys[self.random.random_range(0..keys.len())];
            ["Authorization: Bearer ", key, "\r\n"].into_iter().for_each(&mut write);
        }
        write("\r\n");
    }

    async fn call(&mut self) -> Result<bool, String> {
        let mut expects = "";
        match self.load.requests.clone() {
            Requests::Paths(paths) => self.prepare(&paths, &[]),
            Requests::Keyed(paths, keys) => self.prepare(&paths, &keys),
            Requests::Prepared { expects: expected, .. } => match self.prepared.borrow_mut().pop() {
                Some(made) => (self.request, expects) = (made, expected),
                None => return Ok(false),
            },
        }
        let answered = self.exchange().await;
        let answer = match answered {
            Ok(length) => &self.answer[..length],
            Err(why) => {
                let line = self.request.split(|&byte| byte == b'\r').next().unwrap_or_default();
                return Err(format!("{}: {why}", String::from_utf8_lossy(line)));
            }
        };
        let is_expected =
            expects.is_empty() || answer.windows(expects.len()).any(|part| part == expects.as_bytes());
        if is_expected { Ok(true) } else { Err(String::from_utf8_lossy(answer).into_owned()) }
    }
}

async fn open(load: &Load) -> Result<Box<dyn Stream>, String> {
    let Load { address, ca, .. } = load;
    let opened: std::io::Result<Box<dyn Stream>> = match ca {
        Some(ca) => TlsClient::connect(*address, ca, &[]).await.map(|stream| Box::new(stream) as _),
        None => Dial::default().connect(*address).await.map(|stream| Box::new(stream) as _),
    };
    opened.map_err(|error| format!("cannot connect to {address}: {error}"))
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
        time::Duration,
    };

    use super::*;

    /// A round with a server of one connection that sends its answers in small pieces.
    fn round(answer: &'static [u8], requests: Requests) -> Result<Round, String> {
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
        // Slow enough that the prepared requests last for the round.
        let period = matches!(requests, Requests::Prepared { .. }).then_some(Duration::from_millis(1));
        let pace = Pace { period, ..Pace::closed(1, Duration::from_millis(100)) };
        Load::new(address, requests, pace).run(&[])
    }

    #[test]
    fn a_round_counts_whole_answers_and_fails_with_the_first_that_is_not_200() {
        let paths = || Requests::Paths(Arc::from(["/a".to_owned(), "/b".to_owned()]));
        let fine = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n123456789012345678901234567890";
        let found = round(fine, paths()).unwrap();
        assert!(found.rate() > 10.0, "{}", found.rate());
        assert!(found.quantile_ms(0.5) > 0.0 && found.quantile_ms(0.5) <= found.quantile_ms(1.0));
        let refused = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno";
        let endless = b"HTTP/1.1 200 OK\r\nx: 5\r\n\r\n";
        for (answer, why) in [(&refused[..], "503"), (endless, "no content-length")] {
            let failed = round(answer, paths()).unwrap_err();
            assert!(failed.contains(why) && failed.starts_with("GET /"), "{failed}");
        }
    }

    #[test]
    fn every_answer_to_a_prepared_request_must_contain_the_expected_text() {
        let requests = |expects| Requests::Prepared {
            make: Arc::new(|| b"POST / HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n".to_vec()),
            expects,
        };
        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 31\r\n\r\n{\"success\":true,\"code\":0,\"a\":0}";
        assert!(round(fine, requests("\"code\":0")).unwrap().rate() > 10.0);
        let refused = round(fine, requests("\"code\":7")).unwrap_err();
        assert!(refused.contains("success"), "{refused}");
    }
}
