//! The servers that the mesh needs, PostgreSQL and nats-server: finds or installs their programs and runs
//! private ones. Also CometBFT, which is optional.
//!
//! Each server is prepared once (`Postgres::prepare`, `Nats::prepare`), which writes its folder and chooses
//! its port; from then on it is a `ProcessSpec` that can be started and stopped at will, and a `ready` probe.

mod cometbft;
mod files;
mod find;
mod install;
mod install_cometbft;
mod nats;
mod postgres;

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

pub use cometbft::{
    COMETBFT_PACKAGE, Cometbft, CometbftSettings, Genesis, cometbft_folder, cometbft_height,
    how_to_get_cometbft,
};
pub use files::{free_port, tail};
pub use find::{
    OLDEST_NATS, OLDEST_POSTGRES, PostgresPrograms, find_cometbft, find_nats, find_postgres,
    find_postgres_version,
};
pub use install::{find_or_install_nats, find_or_install_postgres, install_debian_package};
pub use install_cometbft::find_or_install_cometbft;
pub use nats::{Nats, NatsSettings, TlsFiles, nats_greeting};
pub use postgres::{Durability, Postgres};

use tokio::time::{Instant, sleep, timeout_at};

use crate::process::{Process, ProcessSpec};

/// The number of starts of a server that ends before it is ready, and the pause between them. Workers of a
/// server killed a moment ago may hold its shared memory for some milliseconds.
const START_ATTEMPTS: u32 = 6;
const START_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two probes of a server that starts.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Why a server could not be found, prepared or reached. Every message is one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The programs are not on this machine and could not be installed (exit code 69).
    #[error("{0}")]
    Missing(String),
    /// A file or folder of the server could not be read or written.
    #[error("cannot use {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// A program could not be started at all.
    #[error("cannot start {0}: {1}")]
    Spawn(String, #[source] io::Error),
    /// The server, or a program that prepares it, ended by itself.
    #[error("{name} ended with {status} (its log is {log}): {log_tail}")]
    Ended {
        /// The program's name.
        name: String,
        /// Its exit status.
        status: ExitStatus,
        /// The whole log.
        log: PathBuf,
        /// The end of its log.
        log_tail: String,
    },
    /// The server did not answer in time.
    #[error("{name} at {address} was not ready after {waited_s} s: {cause}")]
    NotReady {
        /// The server's name.
        name: &'static str,
        /// Its address.
        address: String,
        /// The timeout, seconds.
        waited_s: u64,
        /// The last failure.
        cause: String,
    },
    /// The data in a folder, of this major version, cannot be served by the programs that were found.
    #[error(
        "the database in {0} was made by PostgreSQL {1}, which is not on this machine: \
         install PostgreSQL {1}, or remove that folder to start over"
    )]
    OtherVersion(PathBuf, u32),
}

impl ServerError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self::File(path.to_owned(), error)
    }

    fn spawn(name: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self::Spawn(name.to_owned(), error)
    }

    fn ended(spec: &ProcessSpec, status: ExitStatus) -> Self {
        Self::Ended {
            name: spec.name.clone(),
            status,
            log: spec.log.clone(),
            log_tail: files::tail(&spec.log, 600).trim().replace('\n', " | "),
        }
    }
}

/// Repeats a probe until it succeeds; the error after `within` has the last failure.
async fn poll_ready<P>(
    name: &'static str,
    address: String,
    within: Duration,
    mut probe: impl FnMut() -> P,
) -> Result<(), ServerError>
where
    P: Future<Output = Result<(), String>>,
{
    let deadline = Instant::now() + within;
    loop {
        // Boxed, because tests nest many futures around this one.
        let cause = match timeout_at(deadline, Box::pin(probe())).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(cause)) => cause,
            Err(_) => "it did not answer".to_owned(),
        };
        if Instant::now() + PROBE_PAUSE >= deadline {
            return Err(ServerError::NotReady { name, address, waited_s: within.as_secs(), cause });
        }
        sleep(PROBE_PAUSE).await;
    }
}

/// Runs a program that prepares a server to its end.
async fn run_to_end(spec: &ProcessSpec) -> Result<(), ServerError> {
    let process = Process::spawn(spec).map_err(ServerError::spawn(&spec.name))?;
    let status = process.wait().await.map_err(ServerError::spawn(&spec.name))?;
    if status.success() { Ok(()) } else { Err(ServerError::ended(spec, status)) }
}

/// Whether a command succeeds; its output is discarded.
fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Starts a server and waits until it is ready. `ready` makes one probe per attempt; the probe carries the
/// deadline.
///
/// # Errors
/// The program cannot be started, has ended too often, or is not ready in time.
pub async fn start<F, R>(spec: &ProcessSpec, ready: F) -> Result<Process, ServerError>
where
    F: Fn() -> R,
    R: Future<Output = Result<(), ServerError>>,
{
    let mut attempt = 1;
    loop {
        let process = Process::spawn(spec).map_err(ServerError::spawn(&spec.name))?;
        let status = tokio::select! {
            outcome = ready() => return outcome.map(|()| process),
            status = process.wait() => status.map_err(ServerError::spawn(&spec.name))?,
        };
        if attempt == START_ATTEMPTS {
            return Err(ServerError::ended(spec, status));
        }
        attempt += 1;
        sleep(START_PAUSE).await;
    }
}
