//! When a live query looks at its answer (W1): for each new head, once a second at most. No I/O and no clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::ask::heads::HeadStatus;

/// Least time between two looks, on average.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How much earlier a look may begin after those before it. Blocks that come a second apart, as precisely as
/// networks are, would otherwise be looked at later and later.
pub(crate) const LOOK_TOLERANCE: Duration = Duration::from_millis(100);

/// Longest time between two looks. Rows that are written late change an answer without a new head, and what
/// tells that nothing has changed (W4) should have looked.
pub(crate) const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// The looks of one live query.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When the last look began.
    looked_at: Instant,
    /// When the next one may begin; `LOOK_TOLERANCE` earlier at most.
    next_at: Instant,
    /// The head's height then.
    height: u64,
    is_looking: bool,
    /// Whether the last look failed.
    has_failed: bool,
    /// Whether the answer may have been read before the head's block: it does not say its height.
    is_provisional: bool,
}

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookResult {
    /// The answer says at which height it was read, which is that of the head.
    AtHeight,
    /// The answer does not say so.
    Unknown,
    /// There is no answer at present.
    Failed,
}

impl Schedule {
    /// A schedule that begins with what a client read, asked for then, at this height of the head: the next
    /// block is looked at as soon as it comes.
    pub(crate) fn new(asked_at: Instant, height: u64, result: LookResult) -> Self {
        let is_provisional = result != LookResult::AtHeight;
        let next_at = if is_provisional { asked_at + LOOK_INTERVAL } else { asked_at };
        Self { looked_at: asked_at, next_at, height, is_looking: false, has_failed: false, is_provisional }
    }

    /// When to look next, if the head stays as it is; `None` during a look.
    pub(crate) fn due(&self, head: HeadStatus) -> Option<Instant> {
        if self.is_looking {
            return None;
        }
        // A head that falls was set back.
        let is_due =
            self.has_failed || self.is_provisional || !head.is_followed || head.height != self.height;
        Some(if is_due { self.next_at - LOOK_TOLERANCE } else { self.looked_at + QUIET_INTERVAL })
    }

    /// Begins a look.
    pub(crate) fn begin(&mut self, now: Instant, head: HeadStatus) {
        self.is_provisional = head.height != self.height;
        self.next_at = self.next_at.max(now) + LOOK_INTERVAL;
        (self.looked_at, self.height, self.is_looking) = (now, head.height, true);
    }

    /// Ends a look. Returns whether it is the second one in a row that failed.
    pub(crate) fn end(&mut self, result: LookResult) -> bool {
        let has_failed_before = self.has_failed;
        self.is_looking = false;
        self.has_failed = result == LookResult::Failed;
        self.is_provisional &= result == LookResult::Unknown;
        has_failed_before && self.has_failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays from each head to its look, with heads that come this many milliseconds apart.
    fn delays(head_ms: impl Iterator<Item = u64>) -> Vec<u64> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 1, LookResult::AtHeight);
        let (mut delays, mut now) = (Vec::new(), start);
        for (height, ms) in (2..).zip(head_ms) {
            now += Duration::from_millis(ms);
            let head = HeadStatus { height, is_followed: true };
            let due = schedule.due(head).expect("no look is under way").max(now);
            schedule.begin(due, head);
            schedule.end(LookResult::AtHeight);
            delays.push((due - now).as_millis() as u64);
        }
        delays
    }

    #[test]
    fn blocks_a_second_apart_are_looked_at_as_they_come_whenever_the_watch_began() {
        for first in [5, 400, 995] {
            assert!(
                delays([first].into_iter().chain([1000; 100])).iter().all(|delay| *delay == 0),
                "{first}"
            );
        }
        let uneven = (0..1000).map(|block| 1000 + [30, -40, 10, 0][block % 4]).map(|ms: i64| ms as u64);
        assert!(delays(uneven).iter().all(|delay| *delay == 0));
    }

    #[test]
    fn faster_blocks_are_looked_at_once_a_second() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, 1, LookResult::AtHeight);
        let mut looks = Vec::new();
        for ms in 0..20_000 {
            let (now, head) =
                (start + Duration::from_millis(ms), HeadStatus { height: ms / 50, is_followed: true });
            if schedule.due(head).is_some_and(|due| due <= now) {
                schedule.begin(now, head);
                schedule.end(LookResult::AtHeight);
                looks.push(ms);
            }
        }
        assert!(looks.len() <= 21, "{looks:?}");
        assert!(looks.is_sorted_by(|before, after| after - before >= 900), "{looks:?}");
    }
}
