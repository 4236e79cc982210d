//! Polling for conditions without an event to wait for.

use std::{fmt::Display, time::Duration};

use tokio::time::{Instant, sleep};

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(10);

/// Polls until the condition holds. Panics with `otherwise` at the time limit; the last poll may exceed it.
pub async fn eventually(within: Duration, otherwise: &str, mut condition: impl AsyncFnMut() -> bool) {
    retry(within, async || if condition().await { Ok(()) } else { Err(otherwise) }).await;
}

/// Repeats a step until it succeeds and returns its value. Panics with the last error at the time limit; the
/// last attempt may exceed it.
pub async fn retry<T, E: Display>(within: Duration, step: impl AsyncFnMut() -> Result<T, E>) -> T {
    poll(within, step).await.unwrap_or_else(|error| panic!("after {within:?}: {error}"))
}

/// Repeats a step until it succeeds and returns its value; the last attempt may exceed the time limit.
///
/// # Errors
/// The error of the last attempt, at the time limit.
pub async fn poll<T, E>(within: Duration, mut step: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
    let deadline = Instant::now() + within;
    loop {
        let outcome = step().await;
        if outcome.is_ok() || Instant::now() >= deadline {
            return outcome;
        }
        sleep(PAUSE).await;
    }
}
