//! The restart rule: how long a process that died waits before it is started again.
//!
//! Comes in: how long each life lasted. Goes out: the wait before the next one. No clock inside.

use std::time::Duration;

/// The figures of the restart rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartRule {
    /// The wait after the first death.
    pub first: Duration,
    /// The longest wait; in between it doubles.
    pub longest: Duration,
    /// A life of this length brings the wait back to the first.
    pub settled: Duration,
}

impl Default for RestartRule {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(5),
            settled: Duration::from_secs(10),
        }
    }
}

/// The rule applied to one process.
#[derive(Clone, Debug)]
pub struct Backoff {
    rule: RestartRule,
    next: Duration,
}

impl Backoff {
    /// Begins with the shortest wait.
    pub fn new(rule: RestartRule) -> Self {
        Self { rule, next: rule.first }
    }

    /// Gives the wait after a life of this length.
    pub fn after(&mut self, life: Duration) -> Duration {
        if life >= self.rule.settled {
            self.next = self.rule.first;
        }
        let wait = self.next;
        self.next = (wait * 2).min(self.rule.longest);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_to_five_seconds_and_a_settled_life_brings_it_back() {
        let mut backoff = Backoff::new(RestartRule::default());
        let short = Duration::from_secs(9);
        let waits: Vec<u128> = (0..7).map(|_| backoff.after(short).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.after(Duration::from_secs(10)).as_millis(), 200);
        assert_eq!(backoff.after(short).as_millis(), 400);
    }
}
