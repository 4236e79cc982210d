//! Stopping a command by a signal.

use mesh_chassis::StopSignals;

use crate::failure::{Failure, cannot};

/// Handlers of the stop signals.
pub fn watch() -> Result<StopSignals, Failure> {
    StopSignals::watch().map_err(|error| cannot("watch for signals", &error))
}

/// Runs a future to its end, or to a stop signal, which fails with `stopped`.
pub(crate) async fn run_until_stopped<T>(
    work: impl Future<Output = Result<T, Failure>>,
    stopped: &str,
) -> Result<T, Failure> {
    let mut signals = watch()?;
    tokio::select! {
        outcome = work => outcome,
        () = signals.stop() => Err(Failure::failed(stopped)),
    }
}
