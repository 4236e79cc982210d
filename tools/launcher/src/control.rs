//! The control protocol between a command line and a running mesh: one JSON line as a request, one as the
//! answer, over a Unix socket in the home.
//!
//! Access to the socket is limited by the mode of the socket's folder, which only its owner may enter.

pub(crate) mod protocol;

use std::{
    fs::File,
    io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    time::Duration,
};

pub use protocol::{Answer, Request, Restarting, Row};
use rustix::fs::{Mode, OFlags};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    time::timeout,
};

use crate::{home::Home, supervisor::Supervisor};

const SOCKET: &str = "control.sock";
/// The longest path, bytes, that fits into a Unix socket address on all systems, without its final zero.
const LONGEST_ADDRESS: usize = 103;
const LONGEST_LINE: u64 = 1 << 20;
const LINE_DEADLINE: Duration = Duration::from_secs(5);
/// Interval at which a running mesh checks that its socket is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of an answer: a rolling restart of many replicas, the slowest request, takes minutes.
const ANSWER_DEADLINE: Duration = Duration::from_secs(600);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process listens on the socket.
    #[error("no mesh runs in {0}; start one with `mesh up --home {0}`")]
    NotRunning(PathBuf),
    /// The socket cannot be used.
    #[error("cannot use the control socket in {0}: {1}")]
    Socket(PathBuf, #[source] io::Error),
    /// The mesh did not answer in time, or ended before it answered.
    #[error("the mesh in {0} did not answer; see the log {1}")]
    NoAnswer(PathBuf, PathBuf),
}

impl ControlError {
    /// Whether the user may not enter the folder of the socket.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Socket(_, error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// The listening side of the control socket.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    home: Home,
}

impl ControlSocket {
    /// Opens the socket of a home whose lock the caller holds; removes the socket of an earlier run.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn bind(home: &Home) -> Result<Self, ControlError> {
        Ok(Self { listener: listen(home)?, home: home.clone() })
    }

    /// Answers until dropped. Each caller has its own task, so that `ps` answers during a restart.
    pub async fn serve(mut self, supervisor: Supervisor) {
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = checks.tick() => {
                    self.restore();
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    let supervisor = supervisor.clone();
                    tokio::spawn(async move {
                        if let Err(error) = answer_one(stream, &supervisor).await {
                            tracing::debug!(%error, "a control connection ended early");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket could not take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Opens the socket again if it was removed from the home. Replicas that start need its folder, too.
    fn restore(&mut self) {
        if self.home.run().join(SOCKET).exists() || !self.home.root().is_dir() {
            return;
        }
        if self.home.create().is_ok()
            && let Ok(listener) = listen(&self.home)
        {
            tracing::warn!("the control socket was removed and is open again");
            self.listener = listener;
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The folder may be gone already, and a stale socket does no harm.
        let _ = std::fs::remove_file(self.home.run().join(SOCKET));
    }
}

fn listen(home: &Home) -> Result<UnixListener, ControlError> {
    let path = home.run().join(SOCKET);
    let failed = |error| ControlError::Socket(home.run(), error);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let address = Address::of(&path).map_err(failed)?;
    UnixListener::bind(&address.path).map_err(failed)
}

async fn answer_one(stream: UnixStream, supervisor: &Supervisor) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::new(reader.take(LONGEST_LINE));
    timeout(LINE_DEADLINE, reader.read_until(b'\n', &mut line)).await??;
    let answer = match serde_json::from_slice(&line) {
        Ok(request) => supervisor.answer(request).await,
        Err(error) => Answer::Refused {
            reason: format!("the request is not understood ({error}); use the `mesh` that runs the mesh"),
        },
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    timeout(LINE_DEADLINE, writer.write_all(&text)).await??;
    writer.shutdown().await
}

/// Sends a request to the mesh that runs in a home and returns its answer.
///
/// # Errors
/// No mesh runs there, or it gives no answer in time.
pub async fn ask(home: &Home, request: &Request) -> Result<Answer, ControlError> {
    let path = home.run().join(SOCKET);
    let failed = |error| ControlError::Socket(home.run(), error);
    let no_answer = || ControlError::NoAnswer(home.root().to_owned(), home.logs());
    let nobody = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ConnectionRefused => {
            ControlError::NotRunning(home.root().to_owned())
        }
        _ => failed(error),
    };
    let address = Address::of(&path).map_err(nobody)?;
    let connected = timeout(LINE_DEADLINE, UnixStream::connect(&address.path)).await;
    let mut stream = connected.map_err(|_| no_answer())?.map_err(nobody)?;
    let mut text = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    stream.write_all(&text).await.map_err(|_| no_answer())?;
    let mut line = Vec::new();
    let read = timeout(ANSWER_DEADLINE, stream.read_to_end(&mut line)).await;
    read.map_err(|_| no_answer())?.map_err(|_| no_answer())?;
    serde_json::from_slice(&line).map_err(|_| no_answer())
}

/// A path that fits into a socket address. A long one is replaced by `/proc/self/fd/N/…` of its open folder.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= LONGEST_ADDRESS {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(folder, flags, Mode::empty())?);
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
        if !short.is_dir() {
            let text = "the path is too long for a socket on this system";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self { path: short.join(name), _folder: Some(folder) })
    }
}
