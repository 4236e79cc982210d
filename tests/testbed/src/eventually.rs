//! Waiting for what has no event.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(10);

/// Looks until it is so. Panics with `otherwise` when it is not so in time; the last look may take longer than that.
pub async fn eventually(within: Duration, otherwise: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{otherwise}");
        sleep(EVERY).await;
    }
}
