//! The lock file in PostgreSQL's folder: cleaning up after a killed launcher, and a server that does not end.

use std::{fs, path::Path, time::Duration};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::{Instant, sleep};

use super::ServerError;

const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The line of the lock file, from 0, with the state of the server.
const STATE_LINE: usize = 7;

/// Stops a left-over server and removes a stale `postmaster.pid`, which would prevent a start.
///
/// PostgreSQL itself removes a lock file whose process is gone. It refuses to start while any process has
/// that id, also one that has nothing to do with it, which is common in containers, where ids begin at 1
/// again.
pub(super) async fn clear(data: &Path) -> Result<(), ServerError> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let pid = text.lines().next().and_then(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|pid| test_kill_process(*pid) != Err(rustix::io::Errno::SRCH)) else {
        return Ok(());
    };
    if !serves(pid, data) {
        return fs::remove_file(&file).map_err(ServerError::file(&file));
    }
    stop(pid, data).await.map_err(ServerError::file(&file))
}

/// The living server of this data that its lock file names.
pub(super) fn server_of(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.trim().parse().ok()?)?;
    serves(pid, data).then_some(pid)
}

/// Ends the sessions of a server that waits for them to end, which SIGTERM makes it do. Until then it takes no new
/// ones.
pub(super) fn hasten_shutdown(data: &Path) {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    if text.lines().nth(STATE_LINE).is_some_and(|state| state.trim() == "stopping")
        && let Some(pid) = server_of(data)
    {
        let _ = kill_process(pid, Signal::INT);
    }
}

async fn stop(pid: Pid, data: &Path) -> std::io::Result<()> {
    let deadline = Instant::now() + STOP_WITHIN;
    while serves(pid, data) {
        if Instant::now() >= deadline {
            return Err(std::io::Error::other(format!(
                "an earlier PostgreSQL (process {}) still runs there and does not stop",
                pid.as_raw_nonzero()
            )));
        }
        let _ = kill_process(pid, Signal::INT);
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Whether a living process is a server of this data, by the folder in its command line. Without `/proc`
/// every living process counts as one.
fn serves(pid: Pid, data: &Path) -> bool {
    let about = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    if !Path::new("/proc/self").exists() {
        return test_kill_process(pid).is_ok();
    }
    let Ok(command) = fs::read(about.join("cmdline")) else { return false };
    let data = data.as_os_str().as_encoded_bytes();
    command.split(|byte| *byte == 0).any(|argument| argument == data)
}
