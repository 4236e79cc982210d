//! Connections over the limit: each gets a 503 before its request is read, and is closed. With TLS it is closed
//! before the handshake, without an answer.

use std::{fs::File, io, net::IpAddr, sync::Arc, time::Duration};

use futures_util::FutureExt;
use http::StatusCode;
use mesh_problem::Problem;
use rustix::io::Errno;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep},
};

use crate::{access_log::AccessLog, unread_body::linger};

/// Rejected connections in lingering close at once; beyond this they are closed without waiting and may lose
/// the 503.
const MAX_LINGERING: usize = 32;

/// Most bytes that are read of a rejected connection.
const REJECTED_BYTES: u64 = 64 << 10;

/// Pause after `accept` failed because a resource ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Least time between two log lines on a failing `accept`.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Rejects connections.
pub(crate) struct Rejector {
    lingering: Arc<Semaphore>,
    access_log: Option<Arc<AccessLog>>,
    /// Whether the clients speak TLS.
    is_secured: bool,
}

impl Rejector {
    pub(crate) fn new(access_log: Option<Arc<AccessLog>>, is_secured: bool) -> Self {
        Self { lingering: Arc::new(Semaphore::new(MAX_LINGERING)), access_log, is_secured }
    }

    /// Answers a connection with 503 and closes it.
    pub(crate) fn reject(&self, stream: TcpStream, peer: IpAddr, reason: &str) {
        self.refuse(&stream, peer, reason);
        if self.is_secured {
            return;
        }
        let Ok(permit) = Arc::clone(&self.lingering).try_acquire_owned() else { return };
        tokio::spawn(async move {
            linger(stream, REJECTED_BYTES).await;
            drop(permit);
        });
    }

    /// Writes the answer as far as the empty socket buffer takes it, and the line of the access log.
    fn refuse(&self, stream: &TcpStream, peer: IpAddr, reason: &str) {
        let id = nuid::next();
        let status = (!self.is_secured).then_some(StatusCode::SERVICE_UNAVAILABLE);
        let bytes = if self.is_secured { 0 } else { write_503(stream, id.as_str()) };
        if let Some(access_log) = &self.access_log {
            let because = format!("too many connections: {reason}");
            access_log.refused(peer, status, id.as_str(), &because, bytes);
        }
    }
}

/// Writes a 503; returns the length of its body.
fn write_503(stream: &TcpStream, id: &str) -> u64 {
    let body = Problem::unavailable("too many connections are open").to_json();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\ncache-control: no-store\r\nx-request-id: {id}\r\nconnection: close\r\n\r\n",
        body.len(),
    )
    .into_bytes();
    answer.extend(&body);
    let _ = stream.try_write(&answer);
    body.len() as u64
}

/// An open file in reserve. When the process has no free file descriptor, it is closed for a moment so that a
/// pending connection can be accepted and rejected; otherwise `accept` would fail for it again and again.
pub(crate) struct SpareFile {
    file: Option<File>,
    logged_at: Option<Instant>,
}

impl SpareFile {
    pub(crate) fn open() -> Self {
        Self { file: open_null(), logged_at: None }
    }

    /// Handles an error of `accept`: rejects one connection where file descriptors ran out, else pauses.
    /// Returns whether a connection was rejected.
    pub(crate) async fn handle_accept_error(
        &mut self,
        listener: &TcpListener,
        error: &io::Error,
        rejector: &Rejector,
    ) -> bool {
        // The client has closed the connection already.
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            return false;
        }
        if self.logged_at.is_none_or(|at| at.elapsed() > LOG_INTERVAL) {
            self.logged_at = Some(Instant::now());
            tracing::warn!(%error, "cannot accept");
        }
        let lacks_files = error.raw_os_error().is_some_and(|code| {
            [Errno::MFILE, Errno::NFILE].iter().any(|errno| errno.raw_os_error() == code)
        });
        if !lacks_files || self.file.take().is_none() {
            sleep(ACCEPT_PAUSE).await;
            self.file = open_null();
            return false;
        }
        let is_rejected = match listener.accept().now_or_never() {
            Some(Ok((stream, peer))) => {
                rejector.refuse(&stream, peer.ip(), "files");
                true
            }
            // No connection is pending, or the descriptor was taken by another task.
            _ => false,
        };
        self.file = open_null();
        if !is_rejected {
            sleep(ACCEPT_PAUSE).await;
        }
        is_rejected
    }
}

fn open_null() -> Option<File> {
    File::open("/dev/null").ok()
}
