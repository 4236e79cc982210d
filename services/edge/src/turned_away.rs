//! Connections that there is no room for: each gets a short answer that was not waited for, and is closed. Nothing of its
//! request is read before, and it costs a moment's work and, for a second at most, one of a few places.

use std::{fs::File, net::IpAddr, sync::Arc, time::Duration};

use futures_util::FutureExt;
use http::StatusCode;
use mesh_problem::Problem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use crate::access::AccessLog;

/// How many may be waited for at the same time until they have read their answer. Others are closed at once, which may
/// cost them the answer when they have sent something already.
const AWAITED: usize = 32;

/// How long, and for how many bytes of what they send.
const AWAITED_FOR: Duration = Duration::from_secs(1);
const AWAITED_BYTES: u64 = 64 << 10;

/// Pause before the next try to accept when the system lacks something.
const PAUSE: Duration = Duration::from_millis(50);

/// How often the log is told that connections cannot be accepted.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Turns connections away.
pub(crate) struct TurnedAway {
    awaited: Arc<Semaphore>,
    access: Option<Arc<AccessLog>>,
}

impl TurnedAway {
    pub(crate) fn new(access: Option<Arc<AccessLog>>) -> Self {
        Self { awaited: Arc::new(Semaphore::new(AWAITED)), access }
    }

    /// Answers a connection with 503 and closes it.
    pub(crate) fn turn_away(&self, mut stream: TcpStream, peer: IpAddr, reason: &str) {
        self.say_no(&stream, peer, reason);
        let Ok(place) = Arc::clone(&self.awaited).try_acquire_owned() else { return };
        tokio::spawn(async move {
            let closed = async {
                // Closing while something is unread resets the connection, and the answer is lost.
                stream.shutdown().await?;
                tokio::io::copy(&mut stream.take(AWAITED_BYTES), &mut tokio::io::sink()).await
            };
            let _ = timeout(AWAITED_FOR, closed).await;
            drop(place);
        });
    }
}

impl TurnedAway {
    /// Answers what was not asked yet. There is always room for this in an empty buffer; if not, there is no answer.
    fn say_no(&self, stream: &TcpStream, peer: IpAddr, reason: &str) {
        let body = Problem::unavailable("too many connections are open").to_json();
        let id = nuid::next();
        let mut answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nx-request-id: {id}\r\nconnection: close\r\n\r\n",
            body.len(),
        )
        .into_bytes();
        let length = body.len() as u64;
        answer.extend(body);
        let _ = stream.try_write(&answer);
        if let Some(access) = &self.access {
            let because = format!("too many connections: {reason}");
            access.refused(peer, StatusCode::SERVICE_UNAVAILABLE, id.as_str(), &because, length);
        }
    }
}

/// An open file that is given up for a moment when there are no more: otherwise a connection could be neither taken nor
/// refused, and the system would say again and again that it is there.
pub(crate) struct Spare {
    file: Option<File>,
    /// When the log was told last.
    told: Option<Instant>,
}

impl Spare {
    pub(crate) fn new() -> Self {
        Self { file: opened(), told: None }
    }

    /// After a failure to accept: refuses one connection if it was for want of files. Says whether it did; if not, some
    /// time has passed.
    pub(crate) async fn make_do(
        &mut self,
        listener: &TcpListener,
        error: &std::io::Error,
        turned_away: &TurnedAway,
    ) -> bool {
        // Its client has gone already.
        if matches!(error.kind(), std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset)
        {
            return false;
        }
        if self.told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
            self.told = Some(Instant::now());
            tracing::warn!(%error, "cannot accept");
        }
        let is_for_files = error.raw_os_error().is_some_and(|code| {
            [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
                .iter()
                .any(|errno| errno.raw_os_error() == code)
        });
        if !is_for_files || self.file.take().is_none() {
            sleep(PAUSE).await;
            self.file = opened();
            return false;
        }
        let refused = match listener.accept().now_or_never() {
            Some(Ok((stream, peer))) => {
                turned_away.say_no(&stream, peer.ip(), "files");
                true
            }
            // There was none, or somebody else took the file.
            _ => false,
        };
        self.file = opened();
        if !refused {
            sleep(PAUSE).await;
        }
        refused
    }
}

fn opened() -> Option<File> {
    File::open("/dev/null").ok()
}
