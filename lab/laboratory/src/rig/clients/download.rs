//! One download over its own connection. HTTP/1 is read directly from the socket, so that no library hides
//! a pause, a missing byte or a missing end.
//!
//! One attempt to download a file: reads it at a pace, compares every byte, and measures the client's waits.

use std::{future::Future, net::SocketAddr, time::Duration};

use mesh_testbed::{
    Answer,
    http1::{Body, Connection, Dial},
};
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    connection::KEY,
    download_results::{DownloadResult, Outcome, Refusal},
    files::ExpectedFile,
};

/// Bytes of a short body that are read at once.
const TEXT_BYTES: usize = 16 << 10;

/// A response whose body is being read.
pub(crate) struct Download {
    pub(crate) head: Answer,
    connection: Connection,
    body: Body,
}

impl Download {
    /// Sends the request and waits for the head. A given receive buffer size is fixed, so that flow control
    /// reaches the server.
    pub(crate) async fn open(
        edge: SocketAddr,
        path: &str,
        range: Option<&str>,
        receive_buffer: Option<u32>,
    ) -> Result<Self, String> {
        let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: rig\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n{range}\r\n"
        );
        let opened = async {
            let mut connection = Connection::over(Dial { receive_buffer, source: None }.connect(edge).await?);
            connection.send(request.as_bytes()).await?;
            let head = connection.head().await?;
            Ok::<_, std::io::Error>((head, connection))
        };
        match opened.await.map_err(|error| format!("the connection broke before the answer: {error}"))? {
            (None, _) => Err("the connection was closed before the answer".to_owned()),
            (Some((_, Body::UntilClose)), _) => Err("the head does not say where the body ends".to_owned()),
            (Some((head, body)), connection) => Ok(Self { head, connection, body }),
        }
    }

    /// Waits for the next bytes of the body, which replace the content of `piece`; at most `most` are read
    /// from the socket at once. Returns `false` at the regular end of the body.
    ///
    /// # Errors
    /// When the body ends otherwise.
    pub(crate) async fn next(&mut self, piece: &mut Vec<u8>, most: usize) -> Result<bool, String> {
        let read = self.connection.piece(&mut self.body, piece, most).await;
        if self.connection.has_unread() {
            return Err("more bytes than the head announces".to_owned());
        }
        read.map_err(|error| format!("the connection broke within the body: {error}"))
    }

    /// The rest of a short body as text.
    pub(crate) async fn text(&mut self) -> Result<String, String> {
        let (mut text, mut piece) = (Vec::new(), Vec::new());
        while self.next(&mut piece, TEXT_BYTES).await? {
            text.append(&mut piece);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Bytes that a quick reader reads from the socket at once.
const QUICK_BYTES: usize = 256 << 10;
/// Bytes that a slow reader reads at once.
const SLOW_BYTES: usize = 16 << 10;
/// Receive buffer of a slow reader, so that flow control reaches the edge. A smaller one, of less than a few
/// 64 KiB packets of the loopback device, would make transfers wait mainly for acknowledgements.
const SLOW_ROOM: u32 = 256 << 10;
/// Characters of a refusal's body that are stored.
const BODY_AT_MOST: usize = 200;

/// How a client reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Greatest number of bytes read at once.
    pub(crate) most: usize,
    /// Pause after each read.
    pub(crate) pause: Duration,
    /// Number of bytes after which it pauses once, and for how long.
    pub(crate) rest: (u64, Duration),
    /// Size of its receive buffer; `None` for the system's default.
    pub(crate) receive_buffer: Option<u32>,
}

impl Pace {
    pub(crate) const QUICK: Self =
        Self { most: QUICK_BYTES, pause: Duration::ZERO, rest: (0, Duration::ZERO), receive_buffer: None };

    /// Spreads the reads of `bytes` evenly over this time.
    pub(crate) fn within(bytes: usize, time: Duration) -> Self {
        let times = u32::try_from(bytes.div_ceil(SLOW_BYTES).max(1)).unwrap_or(u32::MAX);
        Self { most: SLOW_BYTES, pause: time / times, receive_buffer: Some(SLOW_ROOM), ..Self::QUICK }
    }

    /// A random pace: half are quick, 3 in 10 spread their reads over a time up to `longest`, 2 in 10 pause
    /// once for such a time after half of the file.
    pub(crate) fn any(bytes: usize, longest: Duration, random: &mut SmallRng) -> Self {
        let time = longest.mul_f64(random.random_range(0.1..=1.0));
        match random.random_range(0..10) {
            0..5 => Self::QUICK,
            5..8 => Self::within(bytes, time),
            _ => Self { rest: (bytes as u64 / 2, time), receive_buffer: Some(SLOW_ROOM), ..Self::QUICK },
        }
    }
}

/// An attempt to download a file.
struct Transfer {
    result: DownloadResult,
    /// Beginning of the wait in progress.
    waits_since: Option<Instant>,
}

impl Transfer {
    fn begin(path: &str) -> Self {
        let (begun, outcome, pause) = (Instant::now(), Outcome::Whole, Duration::ZERO);
        let (path, ended, is_resumed, bytes, is_answered) = (path.to_owned(), begun, false, 0, false);
        let result = DownloadResult { path, begun, ended, is_resumed, outcome, pause, bytes, is_answered };
        Self { result, waits_since: None }
    }

    /// Waits for the head; any other status than the given one is a refusal.
    ///
    /// # Errors
    /// How the attempt ended, when there is no body to read.
    async fn open(
        &mut self,
        opening: impl Future<Output = Result<Download, String>>,
        status: u16,
    ) -> Result<Download, Outcome> {
        let mut download = self.measure(opening).await.map_err(Outcome::Broken)?;
        self.result.is_answered = true;
        if download.head.status == status {
            return Ok(download);
        }
        let message = download.text().await.unwrap_or_else(|why| why);
        let message = message.chars().take(BODY_AT_MOST).collect();
        let has_retry_after = download.head.header("retry-after").is_some();
        Err(Outcome::Refused(Refusal { status: download.head.status, has_retry_after, message }))
    }

    /// Reads the body to its regular end; `check` says what is wrong with the next bytes.
    ///
    /// # Errors
    /// How the attempt ended, when the body breaks off or is wrong.
    async fn read(
        &mut self,
        mut download: Download,
        pace: Pace,
        mut check: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), Outcome> {
        let (mut piece, (rest_after, mut rest)) = (Vec::new(), pace.rest);
        while self.measure(download.next(&mut piece, pace.most)).await.map_err(Outcome::Broken)? {
            check(&piece).map_err(Outcome::Wrong)?;
            self.result.bytes += piece.len() as u64;
            let rest =
                if self.result.bytes >= rest_after { std::mem::take(&mut rest) } else { Duration::ZERO };
            if pace.pause + rest > Duration::ZERO {
                sleep(pace.pause + rest).await;
            }
        }
        Ok(())
    }

    /// The result of the attempt.
    fn end(mut self, outcome: Result<(), Outcome>) -> DownloadResult {
        // A wait that was still going on at the deadline counts, too.
        self.end_wait();
        let outcome = outcome.err().unwrap_or(Outcome::Whole);
        DownloadResult { ended: Instant::now(), outcome, ..self.result }
    }

    async fn measure<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.waits_since = Some(Instant::now());
        let outcome = wait.await;
        self.end_wait();
        outcome
    }

    fn end_wait(&mut self) {
        let wait = self.waits_since.take().map(|since| since.elapsed());
        self.result.pause = self.result.pause.max(wait.unwrap_or_default());
    }
}

/// Downloads a file at a pace and compares every byte. Calls `at_first` once, after the first correct bytes.
pub(crate) async fn download_file(
    edge: SocketAddr,
    expected: &ExpectedFile,
    pace: Pace,
    deadline: Instant,
    at_first: impl FnOnce(),
) -> DownloadResult {
    let mut transfer = Transfer::begin(&expected.path);
    let outcome = timeout_at(deadline, compare(&mut transfer, edge, expected, pace, at_first)).await;
    transfer.end(outcome.unwrap_or(Err(Outcome::Late)))
}

async fn compare(
    transfer: &mut Transfer,
    edge: SocketAddr,
    expected: &ExpectedFile,
    pace: Pace,
    at_first: impl FnOnce(),
) -> Result<(), Outcome> {
    let range = expected.range.as_ref().map(|range| format!("{}-{}", range.start, range.end - 1));
    let opening = Download::open(edge, &expected.path, range.as_deref(), pace.receive_buffer);
    let download = transfer.open(opening, if range.is_some() { 206 } else { 200 }).await?;
    let etag = download.head.header("etag");
    if etag != expected.etag.as_deref() {
        return Err(Outcome::Wrong(format!("the entity tag is {etag:?}")));
    }
    let (mut at, mut at_first) = (0, Some(at_first));
    let check = |piece: &[u8]| {
        if expected.bytes.get(at..at + piece.len()) != Some(piece) {
            return Err(format!("not the bytes of the file in {} from {at} on", piece.len()));
        }
        at += piece.len();
        if let Some(at_first) = at_first.take() {
            at_first();
        }
        Ok(())
    };
    transfer.read(download, pace, check).await?;
    match expected.bytes.len() {
        length if at == length => Ok(()),
        length => Err(Outcome::Wrong(format!("it ends after {at} bytes of {length} as if it were whole"))),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// The result of an answer when the expected file is `bytes`. The answer ends after a pause.
    async fn result(answer: &'static str, pause: Duration) -> DownloadResult {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::with_capacity(1 << 10)).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            sleep(pause).await;
        });
        let (path, etag) = ("/".to_owned(), Some("\"x\"".to_owned()));
        let expected = ExpectedFile { path, range: None, bytes: Bytes::from_static(b"bytes"), etag };
        let deadline = Instant::now() + Duration::from_secs(20);
        let result = download_file(edge, &expected, Pace::QUICK, deadline, || ()).await;
        served.await.unwrap();
        result
    }

    #[tokio::test]
    async fn only_the_right_bytes_with_the_right_end_are_whole() {
        let outcome = async |answer| result(answer, Duration::ZERO).await.outcome;
        for whole in [
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbytes",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbyt\r\n02\r\nes\r\n0\r\n\r\n",
        ] {
            assert_eq!(outcome(whole).await, Outcome::Whole, "{whole}");
        }
        for wrong in [
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbytez",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 4\r\n\r\nbyte",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 6\r\n\r\nbytes!",
            "HTTP/1.1 200 OK\r\nETag: \"y\"\r\nContent-Length: 5\r\n\r\nbytes",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbyte\r\n0\r\n\r\n",
        ] {
            assert!(matches!(outcome(wrong).await, Outcome::Wrong(_)), "{wrong}");
        }
        for broken in [
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbyte",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbytes!",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n0\r\n",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\nx",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\nbytes",
            "HTTP/1.1 200 OK\r\nContent-",
            "SSH-2.0\r\n\r\n",
            "",
        ] {
            assert!(matches!(outcome(broken).await, Outcome::Broken(_)), "{broken}");
        }
        let refused = outcome("HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nlater").await;
        let refusal = Refusal { status: 503, has_retry_after: true, message: "later".to_owned() };
        assert!(refusal.is_temporary());
        assert_eq!(refused, Outcome::Refused(refusal));
    }

    #[tokio::test]
    async fn the_longest_wait_is_measured() {
        let answer = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbyte";
        let result = result(answer, Duration::from_millis(30)).await;
        assert!(result.pause >= Duration::from_millis(20) && result.bytes == 4, "{result:?}");
    }
}
