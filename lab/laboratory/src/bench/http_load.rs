//! Clients of HTTP/1.1 for a load: each has one buffer for requests and one for answers, and reads only status and
//! length of an answer.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc};

use mesh_testbed::http1::{Dial, Head};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    cost::MeasuredProcess,
    load::{Client, Pace, WARM_UP},
    meter::Round,
};

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
    /// Runs one round on the calling thread.
    ///
    /// # Errors
    /// When an answer is not 200 or lacks the required text, or a connection breaks.
    pub(super) fn run(&self, watched: &[MeasuredProcess]) -> Result<Round, String> {
        let prepared = Rc::new(RefCell::new(self.prepared()));
        let connect = |number| HttpClient::connect(self.clone(), Rc::clone(&prepared), number);
        self.pace.run(watched, connect)
    }

    /// Prepares the requests.
    fn prepared(&self) -> Vec<Vec<u8>> {
        let Requests::Prepared { make, .. } = &self.requests else { return Vec::new() };
        let seconds = (WARM_UP + self.pace.length).as_secs_f64();
        let a_second = (PREPARED_A_SECOND * self.pace.clients).min(PREPARED_A_SECOND_AT_MOST);
        let count = ((a_second as f64 * seconds) as u64).min(PREPARED_AT_MOST);
        (0..count).map(|_| make()).collect()
    }
}

/// A connection of HTTP/1.1.
struct HttpClient {
    stream: TcpStream,
    requests: Requests,
    /// Prepared requests that are not sent yet.
    prepared: Rc<RefCell<Vec<Vec<u8>>>>,
    random: SmallRng,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl HttpClient {
    async fn connect(load: Load, prepared: Rc<RefCell<Vec<Vec<u8>>>>, number: u64) -> Result<Self, String> {
        let Load { address, requests, .. } = load;
        let connected = Dial::default().connect(address).await;
        let stream = connected.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        let (random, request) = (SmallRng::seed_from_u64(number), Vec::with_capacity(256));
        Ok(Self { stream, requests, prepared, random, request, answer: vec![0; ANSWER_BYTES] })
    }

    /// Sends the request and reads its whole answer; returns the length of the answer.
    async fn exchange(&mut self) -> Result<usize, String> {
        let broken = |error: std::io::Error| format!("the connection broke: {error}");
        self.stream.write_all(&self.request).await.map_err(broken)?;
        let mut filled = 0;
        loop {
            let room = self.answer.get_mut(filled..).unwrap_or_default();
            let read = self.stream.read(room).await.map_err(broken)?;
            if read == 0 {
                return Err("the connection was closed".to_owned());
            }
            filled += read;
            let Some(length) = whole_length(&self.answer[..filled])? else { continue };
            if filled == length {
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
}

impl Client for HttpClient {
    async fn call(&mut self) -> Result<bool, String> {
        let mut expects = "";
        match &self.requests {
            Requests::Paths(paths) => {
                let path = &paths[self.random.random_range(0..paths.len())];
                self.request.clear();
                for part in ["GET ", path, " HTTP/1.1\r\nHost: bench\r\n\r\n"] {
                    self.request.extend_from_slice(part.as_bytes());
                }
            }
            Requests::Prepared { expects: expected, .. } => match self.prepared.borrow_mut().pop() {
                Some(made) => (self.request, expects) = (made, *expected),
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

/// The length of an answer with its head, or `None` as long as the head is not complete.
pub(super) fn whole_length(answer: &[u8]) -> Result<Option<usize>, String> {
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
        Load { address, requests, pace }.run(&[])
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
