//! The time limit of a connection attempt, and the pauses between attempts.

use std::time::Duration;

/// Longest time to make a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// The pauses between attempts to connect: doubled each time, up to [`MAX_PAUSE`], so that a restarted server is
/// used soon.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_PAUSE)
    }
}

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_a_second() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..7).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 250, 250]);
    }
}
