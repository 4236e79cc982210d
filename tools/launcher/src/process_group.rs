//! Runs another program, such as cargo, in a process group, so that it can be stopped with all its children.

use std::{io, process::ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Runs a command in its own process group. Dropping the future sends SIGTERM to the whole group; a compiler would
/// otherwise outlive its cargo.
///
/// # Errors
/// The program cannot be started.
pub async fn run(command: Command) -> io::Result<ExitStatus> {
    run_with(command, async |_| ()).await.map(|(status, ())| status)
}

/// Like [`run`], with a future over the child that is awaited before the child's end.
///
/// # Errors
/// The program cannot be started.
pub async fn run_with<T>(
    mut command: Command,
    meanwhile: impl AsyncFnOnce(&mut Child) -> T,
) -> io::Result<(ExitStatus, T)> {
    command.process_group(0).stdin(std::process::Stdio::null());
    let mut child = command.spawn()?;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let mut group = Group { leader: pid };
    let done = meanwhile(&mut child).await;
    let status = child.wait().await;
    group.leader = None;
    Ok((status?, done))
}

struct Group {
    leader: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // Fails only when the group has ended already.
            let _ = kill_process_group(leader, Signal::TERM);
        }
    }
}
