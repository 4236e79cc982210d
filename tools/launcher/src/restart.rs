//! The restart rule: the wait before a process that died is started again.
//! It depends on how long each run lasted, and reads no clock.

use std::time::Duration;

/// The parameters of the restart rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartRule {
    /// The wait after the first death.
    pub first: Duration,
    /// The longest wait; each wait is twice the previous one.
    pub longest: Duration,
    /// A run of at least this length resets the wait to the first.
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

/// The state of the restart rule for one process.
#[derive(Clone, Debug)]
pub struct Backoff {
    rule: RestartRule,
    next: Duration,
}

impl Backoff {
    /// Starts with the first wait.
    pub fn new(rule: RestartRule) -> Self {
        Self { rule, next: rule.first }
    }

    /// The wait after a run of this length.
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
