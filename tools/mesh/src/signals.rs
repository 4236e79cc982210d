//! The wish to stop, as it comes from a terminal or from the system.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Watches for the signals that ask a command to stop. From its making on they do not kill the process.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Not watched where it is ignored, as under nohup.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// The system does not let it.
    pub fn watch() -> Result<Self, Failure> {
        let watch = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("cannot watch for signals ({error}); try again")))
        };
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hang_up: if hang_up_is_ignored() { None } else { Some(watch(SignalKind::hangup())?) },
        })
    }

    /// Waits for the wish to stop.
    pub async fn stop(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hang_up => {}
        }
    }
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
