//! Clients that download one file after the other until they are stopped, and resume broken downloads.

use std::{
    future::ready,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::{
    download_batch::{Pace, download_file},
    download_results::{DownloadResult, Outcome},
    files::ExpectedFile,
};

/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(600);
/// Pause before a client resumes a file.
const AGAIN: Duration = Duration::from_millis(200);

/// Chooses the next file of a client, and its pace.
pub(crate) type Choose = dyn Fn(&mut SmallRng) -> (ExpectedFile, Pace) + Send + Sync;

/// One attempt to download a file, or the rest of it.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// When it was started.
    pub(crate) begun: Instant,
    /// When it ended.
    pub(crate) ended: Instant,
    /// Its result.
    pub(crate) result: DownloadResult,
    /// Whether it resumes an earlier attempt.
    pub(crate) is_resumed: bool,
    /// Path of the request.
    pub(crate) path: String,
}

/// Counts of files by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileCounts {
    /// Completely downloaded files, resumed ones included.
    pub(crate) whole: usize,
    /// Of those, the files that took more than one attempt.
    pub(crate) resumed: usize,
    /// Files given up: wrong content, too late, or refused without `Retry-After`.
    pub(crate) lost: usize,
    /// Files that were not complete at the end of the run.
    pub(crate) unfinished: usize,
}

/// Clients that download. They are aborted when this is dropped.
pub(crate) struct Downloaders {
    clients: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    edge: SocketAddr,
    ends: AtomicBool,
    reading: AtomicUsize,
    begun: AtomicUsize,
    /// Attempts started, and answers received.
    sent: AtomicU64,
    answers: AtomicU64,
    attempts: Mutex<Vec<Attempt>>,
    files: Mutex<FileCounts>,
}

impl Downloaders {
    /// Starts clients: for each kind, that many clients with its choice of files.
    pub(crate) fn start(edge: SocketAddr, kinds: &[(usize, Arc<Choose>)], seed: u64) -> Self {
        let shared = Arc::new(Shared {
            edge,
            ends: AtomicBool::new(false),
            reading: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            attempts: Mutex::default(),
            files: Mutex::default(),
        });
        let mut clients = JoinSet::new();
        let choices = kinds.iter().flat_map(|(count, choose)| std::iter::repeat_n(choose, *count));
        for (number, choose) in (1..).zip(choices) {
            let (shared, choose) = (Arc::clone(&shared), Arc::clone(choose));
            let mut random = SmallRng::seed_from_u64(seed ^ u64::rotate_left(number, 24));
            clients.spawn(async move {
                while !shared.ends.load(Ordering::Relaxed) {
                    let (expected, pace) = choose(&mut random);
                    shared.fetch(expected, pace).await;
                }
            });
        }
        Self { clients, shared }
    }

    /// Number of downloads that are reading a body.
    pub(crate) fn reading(&self) -> usize {
        self.shared.reading.load(Ordering::Relaxed)
    }

    /// Numbers of requests sent so far, and of answers of finished attempts.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.sent.load(Ordering::Relaxed), self.shared.answers.load(Ordering::Relaxed))
    }

    /// The finished attempts.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.shared.attempts.lock().clone()
    }

    /// Starts no more files, and waits at most `within` until those in progress are finished.
    pub(crate) async fn end(mut self, within: Duration) -> (Vec<Attempt>, FileCounts) {
        self.shared.ends.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + within;
        while let Ok(Some(_)) = timeout_at(deadline, self.clients.join_next()).await {}
        self.clients.shutdown().await;
        let mut files = *self.shared.files.lock();
        let begun = self.shared.begun.load(Ordering::Relaxed);
        files.unfinished = begun.saturating_sub(files.whole + files.lost);
        (self.attempts(), files)
    }
}

impl Shared {
    /// Downloads a file, resuming as often as necessary.
    async fn fetch(&self, expected: ExpectedFile, pace: Pace) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let (mut left, mut attempts) = (expected, 0);
        loop {
            let begun = Instant::now();
            // At the end of the run the remaining attempts are not throttled.
            let pace = if self.ends.load(Ordering::Relaxed) { Pace::QUICK } else { pace };
            self.sent.fetch_add(1, Ordering::Relaxed);
            let result =
                download_file(self.edge, &left, pace, begun + ATTEMPT_TIMEOUT, &self.reading, ready(()))
                    .await;
            attempts += 1;
            self.answers.fetch_add(u64::from(result.is_answered), Ordering::Relaxed);
            left = left.after(usize::try_from(result.bytes).unwrap_or(usize::MAX));
            let ended = match &result.outcome {
                Outcome::Whole => Some(true),
                Outcome::Wrong(_) | Outcome::Late => Some(false),
                Outcome::Refused(refusal) => (!refusal.is_temporary()).then_some(false),
                Outcome::Broken(_) => None,
            };
            let (ended_at, is_resumed) = (Instant::now(), attempts > 1);
            let path = left.path.clone();
            self.attempts.lock().push(Attempt { begun, ended: ended_at, result, is_resumed, path });
            if let Some(is_whole) = ended {
                let mut files = self.files.lock();
                *(if is_whole { &mut files.whole } else { &mut files.lost }) += 1;
                files.resumed += usize::from(is_whole && attempts > 1);
                return;
            }
            sleep(AGAIN).await;
        }
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

    #[tokio::test]
    async fn a_file_that_breaks_off_is_got_in_parts() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                stream.read_buf(&mut request).await.unwrap();
                let request = String::from_utf8(request).unwrap();
                let range = request.lines().find_map(|line| line.strip_prefix("Range: bytes="));
                let first: usize = range.map_or(0, |range| range.split('-').next().unwrap().parse().unwrap());
                noted.lock().push(first);
                let status = if range.is_some() { 206 } else { 200 };
                let length = 10 - first;
                let piece = &"0123456789"[first..(first + 4).min(10)];
                let answer =
                    format!("HTTP/1.1 {status} OK\r\nETag: \"x\"\r\nContent-Length: {length}\r\n\r\n{piece}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let (path, etag) = ("/".to_owned(), Some("\"x\"".to_owned()));
        let expected = ExpectedFile { path, range: None, bytes: Bytes::from_static(b"0123456789"), etag };
        let choose: Arc<Choose> = Arc::new(move |_: &mut SmallRng| (expected.clone(), Pace::QUICK));
        let downloaders = Downloaders::start(edge, &[(1, choose)], 1);
        while asked.lock().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        let (attempts, files) = downloaders.end(Duration::from_secs(20)).await;
        assert_eq!(asked.lock()[..3], [0, 4, 8]);
        assert_eq!(
            (files.whole, files.resumed, files.lost, files.unfinished),
            (files.whole, files.whole, 0, 0)
        );
        assert!(matches!(attempts[0].result.outcome, Outcome::Broken(_)) && !attempts[0].is_resumed);
        assert!(attempts[2].result.outcome == Outcome::Whole && attempts[2].is_resumed);
    }
}
