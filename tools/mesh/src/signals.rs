//! The signals that ask a command to stop: SIGINT, SIGTERM and SIGHUP.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, failed};

/// Handlers of the stop signals. Once it exists, these signals no longer kill the process.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where the process ignores SIGHUP, as under nohup.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    pub fn watch() -> Result<Self, Failure> {
        let watch =
            |kind| signal(kind).map_err(|error| failed!("cannot watch for signals ({error}); try again"));
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hang_up: if hang_up_is_ignored() { None } else { Some(watch(SignalKind::hangup())?) },
        })
    }

    /// Resolves at the next stop signal.
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

    /// Runs a future to its end, or to a stop signal, which fails with `stopped`.
    pub(crate) async fn run_until_stopped<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
        stopped: &str,
    ) -> Result<T, Failure> {
        tokio::select! {
            outcome = work => outcome,
            () = self.stop() => Err(Failure::failed(stopped)),
        }
    }
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
