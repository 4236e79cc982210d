//! Concurrent downloads, each compared with the expected file.

use std::{
    future::{Future, ready},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mesh::failure::Failure;
use rand::{Rng as _, rngs::SmallRng};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use super::{
    download::Download,
    download_results::{DownloadResult, Outcome, Refusal},
    files::ExpectedFile,
};

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
    /// One pause after half of the file.
    pub(crate) rest: Duration,
    /// Size of its receive buffer; `None` for the system's default.
    pub(crate) receive_buffer: Option<u32>,
}

impl Pace {
    /// Reads as fast as it can.
    pub(crate) const QUICK: Self =
        Self { most: QUICK_BYTES, pause: Duration::ZERO, rest: Duration::ZERO, receive_buffer: None };

    /// Spreads the reads of `bytes` evenly over this time.
    pub(crate) fn within(bytes: usize, time: Duration) -> Self {
        let times = u32::try_from(bytes.div_ceil(SLOW_BYTES).max(1)).unwrap_or(u32::MAX);
        Self { most: SLOW_BYTES, pause: time / times, receive_buffer: Some(SLOW_ROOM), ..Self::QUICK }
    }

    /// A random pace: half are quick, 3 in 10 spread their reads over a time up to `longest`, 2 in 10 pause
    /// once for such a time.
    pub(crate) fn any(bytes: usize, longest: Duration, random: &mut SmallRng) -> Self {
        let time = longest.mul_f64(random.random_range(0.1..=1.0));
        match random.random_range(0..10) {
            0..5 => Self::QUICK,
            5..8 => Self::within(bytes, time),
            _ => Self { rest: time, receive_buffer: Some(SLOW_ROOM), ..Self::QUICK },
        }
    }
}

/// Downloads in progress.
pub(crate) struct DownloadBatch {
    tasks: JoinSet<DownloadResult>,
    reading: Arc<AtomicUsize>,
    /// Number of finished downloads.
    ended: Arc<AtomicUsize>,
    /// Downloads that are not finished by then are late.
    deadline: Instant,
}

impl DownloadBatch {
    /// Starts the downloads, at most `at_once` concurrently, each `interval` after the one before. Those not
    /// finished after `time_limit` are late.
    pub(crate) fn start(
        edge: SocketAddr,
        downloads: Vec<(ExpectedFile, Pace)>,
        at_once: usize,
        interval: Duration,
        time_limit: Duration,
    ) -> Self {
        let (room, reading) = (Arc::new(Semaphore::new(at_once)), Arc::<AtomicUsize>::default());
        let ended = Arc::<AtomicUsize>::default();
        let now = Instant::now();
        let deadline = now + time_limit;
        let mut tasks = JoinSet::new();
        for (index, (expected, pace)) in (0..).zip(downloads) {
            let (room, reading, ended) = (Arc::clone(&room), Arc::clone(&reading), Arc::clone(&ended));
            tasks.spawn(async move {
                sleep_until(now + interval * index).await;
                let _turn = room.acquire_owned().await;
                let result = download_file(edge, &expected, pace, deadline, &reading, ready(())).await;
                ended.fetch_add(1, Ordering::Relaxed);
                result
            });
        }
        Self { tasks, reading, ended, deadline }
    }

    /// Waits until `count` downloads have got their head and are reading the body.
    pub(crate) async fn is_reading(&self, count: usize) -> Result<(), Failure> {
        while self.reading.load(Ordering::Relaxed) < count {
            let left = self.tasks.len() - self.ended.load(Ordering::Relaxed);
            if left < count || Instant::now() >= self.deadline {
                return Err(Failure::failed(format!(
                    "never were {count} downloads under way at once: {left} of {} are left",
                    self.tasks.len()
                )));
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Number of downloads that are reading the body.
    pub(crate) fn reading(&self) -> usize {
        self.reading.load(Ordering::Relaxed)
    }

    /// Waits for all downloads and returns their results.
    pub(crate) async fn results(self) -> Vec<DownloadResult> {
        self.tasks.join_all().await
    }
}

/// Downloads a file at a pace and compares every byte. Awaits `at_first` once, after the first bytes.
pub(crate) async fn download_file(
    edge: SocketAddr,
    expected: &ExpectedFile,
    pace: Pace,
    deadline: Instant,
    reading: &AtomicUsize,
    at_first: impl Future<Output = ()>,
) -> DownloadResult {
    let mut result =
        DownloadResult { outcome: Outcome::Late, pause: Duration::ZERO, bytes: 0, is_answered: false };
    let mut waits_since = None;
    let read = read(edge, expected, pace, reading, at_first, &mut result, &mut waits_since);
    if let Ok(outcome) = timeout_at(deadline, read).await {
        result.outcome = outcome;
    }
    // A wait that was still going on at the deadline counts, too.
    result.pause = result.pause.max(waits_since.map(|since: Instant| since.elapsed()).unwrap_or_default());
    result
}

async fn read(
    edge: SocketAddr,
    expected: &ExpectedFile,
    pace: Pace,
    reading: &AtomicUsize,
    at_first: impl Future<Output = ()>,
    result: &mut DownloadResult,
    waits_since: &mut Option<Instant>,
) -> Outcome {
    let range = expected.range.as_ref().map(|range| format!("{}-{}", range.start, range.end - 1));
    *waits_since = Some(Instant::now());
    let mut download = match Download::open(edge, &expected.path, range.as_deref(), pace.receive_buffer).await
    {
        Ok(download) => download,
        Err(why) => return Outcome::Broken(why),
    };
    waited(result, waits_since);
    result.is_answered = true;
    let status = download.head.status;
    if status != if range.is_some() { 206 } else { 200 } {
        return refused(&mut download).await;
    }
    if download.head.etag != expected.etag {
        return Outcome::Wrong(format!("the entity tag is {:?}", download.head.etag));
    }
    let is_reading = ReadingGuard::begin(reading);
    let outcome = compare(&mut download, expected, pace, at_first, result, waits_since).await;
    drop(is_reading);
    outcome
}

/// Reads the body of an answer that is not the file.
pub(crate) async fn refused(download: &mut Download) -> Outcome {
    let message = download.text().await.unwrap_or_else(|why| why);
    let has_retry_after = download.head.retry_after.is_some();
    let message = message.chars().take(BODY_AT_MOST).collect();
    Outcome::Refused(Refusal { status: download.head.status, has_retry_after, message })
}

async fn compare(
    download: &mut Download,
    expected: &ExpectedFile,
    pace: Pace,
    at_first: impl Future<Output = ()>,
    result: &mut DownloadResult,
    waits_since: &mut Option<Instant>,
) -> Outcome {
    let (mut at, mut rest, mut piece) = (0, pace.rest, Vec::new());
    let mut at_first = Some(at_first);
    loop {
        *waits_since = Some(Instant::now());
        let next = download.next(&mut piece, pace.most).await;
        waited(result, waits_since);
        match next {
            Ok(true) => {}
            Ok(false) if at == expected.bytes.len() => return Outcome::Whole,
            Ok(false) => {
                let length = expected.bytes.len();
                return Outcome::Wrong(format!("it ends after {at} bytes of {length} as if it were whole"));
            }
            Err(why) => return Outcome::Broken(why),
        }
        if expected.bytes.get(at..at + piece.len()) != Some(&piece[..]) {
            return Outcome::Wrong(format!("not the bytes of the file in {} from {at} on", piece.len()));
        }
        at += piece.len();
        result.bytes = at as u64;
        if let Some(at_first) = at_first.take() {
            at_first.await;
        }
        if rest > Duration::ZERO && at >= expected.bytes.len() / 2 {
            sleep(std::mem::take(&mut rest)).await;
        }
        if pace.pause > Duration::ZERO {
            sleep(pace.pause).await;
        }
    }
}

fn waited(result: &mut DownloadResult, since: &mut Option<Instant>) {
    let wait = since.take().map(|since| since.elapsed()).unwrap_or_default();
    result.pause = result.pause.max(wait);
}

/// Counts a download as reading its body until dropped.
struct ReadingGuard<'a>(&'a AtomicUsize);

impl<'a> ReadingGuard<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for ReadingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

    /// The outcome of an answer when the expected file is `bytes`.
    async fn outcome(answer: &'static [u8]) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::new()).await.unwrap();
            stream.write_all(answer).await.unwrap();
            // A pause that the client measures.
            sleep(Duration::from_millis(30)).await;
        });
        let (path, etag) = ("/".to_owned(), Some("\"x\"".to_owned()));
        let expected = ExpectedFile { path, range: None, bytes: Bytes::from_static(b"bytes"), etag };
        let batch = DownloadBatch::start(
            edge,
            vec![(expected, Pace::QUICK)],
            1,
            Duration::ZERO,
            Duration::from_secs(20),
        );
        let result = batch.results().await.remove(0);
        served.await.unwrap();
        if let Outcome::Broken(_) = result.outcome {
            assert!(result.pause >= Duration::from_millis(20), "{:?}", result.pause);
        }
        result.outcome
    }

    #[tokio::test]
    async fn only_the_right_bytes_with_the_right_end_are_whole() {
        let of = async |answer: &'static str| outcome(answer.as_bytes()).await;
        assert_eq!(
            of("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbytes").await,
            Outcome::Whole
        );
        for wrong in [
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbytez",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 4\r\n\r\nbyte",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 6\r\n\r\nbytes!",
            "HTTP/1.1 200 OK\r\nETag: \"y\"\r\nContent-Length: 5\r\n\r\nbytes",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbyte\r\n0\r\n\r\n",
        ] {
            assert!(matches!(of(wrong).await, Outcome::Wrong(_)), "{wrong}");
        }
        for broken in [
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\nbyte",
            "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbytes\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert!(matches!(of(broken).await, Outcome::Broken(_)), "{broken}");
        }
        let refused = of("HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nlater").await;
        let refusal = Refusal { status: 503, has_retry_after: true, message: "later".to_owned() };
        assert!(refusal.is_temporary());
        assert_eq!(refused, Outcome::Refused(refusal));
    }
}
