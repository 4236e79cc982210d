//! Clients that download file after file, with resumption, until they are stopped.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::failure::Failure;
use mesh_testbed::poll;
use parking_lot::Mutex;
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use super::{
    download::{Pace, download_file},
    download_results::{DownloadResult, Outcome},
    files::ExpectedFile,
};

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(600);
/// Pause before a client resumes a file.
const AGAIN: Duration = Duration::from_millis(200);
/// How long all clients may take to be reading at the same time.
const READING_WITHIN: Duration = Duration::from_secs(60);

/// Chooses the next file of a client, and its pace.
pub(crate) type Choose = dyn Fn(&mut SmallRng) -> (ExpectedFile, Pace) + Send + Sync;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileCounts {
    /// Completely downloaded files, resumed ones included.
    pub(crate) whole: usize,
    /// Of those, the files that took more than one attempt.
    pub(crate) resumed: usize,
    /// Files given up: wrong content, too late, or refused without `Retry-After`.
    pub(crate) lost: usize,
    pub(crate) unfinished: usize,
}

/// Clients that download. They are aborted when this is dropped.
pub(crate) struct Downloaders {
    clients: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    edge: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether no more files are to be started.
    ends: bool,
    /// Downloads that have received the first bytes of the body and not the last ones.
    reading: usize,
    /// Attempts started, and answers of finished attempts.
    counts: (u64, u64),
    results: Vec<DownloadResult>,
    files: FileCounts,
}

impl Downloaders {
    /// Starts clients that download until [`Downloaders::end`], and resume broken downloads: for each kind,
    /// that many clients with its choice of files, each `interval` after the one before.
    pub(crate) fn start(
        edge: SocketAddr,
        kinds: &[(usize, Arc<Choose>)],
        interval: Duration,
        seed: u64,
    ) -> Self {
        let (mut clients, begun) = (JoinSet::new(), Instant::now());
        let shared = Arc::new(Shared { edge, state: Mutex::default() });
        let choices = kinds.iter().flat_map(|(count, choose)| std::iter::repeat_n(choose, *count));
        for (number, choose) in (1_u32..).zip(choices) {
            let (shared, choose) = (Arc::clone(&shared), Arc::clone(choose));
            let mut random = SmallRng::seed_from_u64(seed ^ u64::from(number).rotate_left(24));
            clients.spawn(async move {
                sleep_until(begun + interval * number).await;
                while !shared.state.lock().ends {
                    let (file, pace) = choose(&mut random);
                    shared.download_resuming(file, pace).await;
                }
            });
        }
        Self { clients, shared }
    }

    /// Number of downloads that are reading a body.
    pub(crate) fn reading(&self) -> usize {
        self.shared.state.lock().reading
    }

    /// Waits until `count` downloads are reading a body.
    pub(crate) async fn until_reading(&self, count: usize) -> Result<(), Failure> {
        let is_reading = async || match self.reading() {
            reading if reading >= count => Ok(()),
            reading => {
                Err(Failure::failed(format!("{reading} downloads are under way at once, not {count}")))
            }
        };
        poll(READING_WITHIN, is_reading).await
    }

    /// Numbers of requests sent so far, and of answers of finished attempts.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.shared.state.lock().counts
    }

    pub(crate) async fn until_finished(&self, attempts: usize) {
        while self.shared.state.lock().results.len() < attempts {
            sleep(AGAIN).await;
        }
    }

    /// Starts no more files, and waits at most `within` until those in progress are finished. Returns all
    /// attempts.
    pub(crate) async fn end(mut self, within: Duration) -> (Vec<DownloadResult>, FileCounts) {
        self.shared.state.lock().ends = true;
        let deadline = Instant::now() + within;
        while let Ok(Some(_)) = timeout_at(deadline, self.clients.join_next()).await {}
        self.clients.shutdown().await;
        let mut state = self.shared.state.lock();
        (std::mem::take(&mut state.results), state.files)
    }
}

impl Shared {
    async fn download_resuming(&self, file: ExpectedFile, pace: Pace) {
        self.state.lock().files.unfinished += 1;
        let (mut left, mut is_resumed) = (file, false);
        loop {
            // At the end of the run the remaining attempts are not throttled.
            let pace = if self.state.lock().ends { Pace::QUICK } else { pace };
            let deadline = Instant::now() + ATTEMPT_TIMEOUT;
            let (outcome, bytes) = self.attempt(&left, pace, deadline, is_resumed).await;
            left = left.after(bytes);
            let is_whole = match outcome {
                Outcome::Whole => Some(true),
                Outcome::Wrong(_) | Outcome::Late => Some(false),
                Outcome::Refused(refusal) => (!refusal.is_temporary()).then_some(false),
                Outcome::Broken(_) => None,
            };
            if let Some(is_whole) = is_whole {
                let mut state = self.state.lock();
                let files = &mut state.files;
                files.unfinished -= 1;
                *(if is_whole { &mut files.whole } else { &mut files.lost }) += 1;
                files.resumed += usize::from(is_whole && is_resumed);
                return;
            }
            is_resumed = true;
            sleep(AGAIN).await;
        }
    }

    /// Downloads a file once, and records the result. Returns the outcome and the number of bytes received.
    async fn attempt(
        &self,
        file: &ExpectedFile,
        pace: Pace,
        deadline: Instant,
        is_resumed: bool,
    ) -> (Outcome, u64) {
        self.state.lock().counts.0 += 1;
        let begins_to_read = || self.state.lock().reading += 1;
        let result = download_file(self.edge, file, pace, deadline, begins_to_read).await;
        let (outcome, bytes) = (result.outcome.clone(), result.bytes);
        let mut state = self.state.lock();
        state.reading -= usize::from(bytes > 0);
        state.counts.1 += u64::from(result.is_answered);
        state.results.push(DownloadResult { is_resumed, ..result });
        (outcome, bytes)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mesh_testbed::eventually;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn a_file_that_breaks_off_is_downloaded_in_parts() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::with_capacity(1 << 10);
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
        let downloaders = Downloaders::start(edge, &[(1, choose)], Duration::ZERO, 1);
        eventually(Duration::from_secs(20), "nothing is asked", async || !asked.lock().is_empty()).await;
        let (attempts, files) = downloaders.end(Duration::from_secs(20)).await;
        assert_eq!(asked.lock()[..3], [0, 4, 8]);
        assert_eq!(files, FileCounts { resumed: files.whole, lost: 0, unfinished: 0, ..files });
        assert!(matches!(attempts[0].outcome, Outcome::Broken(_)) && !attempts[0].is_resumed);
        assert!(attempts[2].outcome == Outcome::Whole && attempts[2].is_resumed);
    }
}
