//! Schedules the looks of a live query (W1): one for each new head, at most about one a second. No I/O and no
//! clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::ask::heads::HeadStatus;

/// Least time between two looks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Least time between two looks if exactly one block has come since. Blocks come about once a second, not to the
/// millisecond: a look that is late for its block, because of load or of the start of the watch, is followed by
/// looks that catch up.
pub(crate) const BLOCK_INTERVAL: Duration = Duration::from_millis(900);

/// Longest time between two looks. Late rows change an answer without a new head, and a heartbeat (W4), which
/// means "unchanged", needs a recent look.
pub(crate) const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// The looks of one live query.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When the last look started; at first, when the client's first read started.
    looked_at: Instant,
    /// Height and number of resets of the head at that time.
    height: u64,
    resets: u64,
    /// Whether there has been no look yet.
    is_new: bool,
    is_looking: bool,
    /// Whether the last look failed.
    has_failed: bool,
    /// Whether the answer may have been read before the head's block, because it has no height.
    is_provisional: bool,
}

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookResult {
    /// The answer contains its height, which is that of the head.
    AtHeight,
    /// The answer, or the rejection, has no height.
    Unknown,
    /// The read failed temporarily.
    Failed,
}

impl Schedule {
    /// A schedule that starts with a client's read, requested at `asked_at` with this height of the head. The next
    /// block triggers a look immediately.
    pub(crate) fn new(asked_at: Instant, (height, resets): (u64, u64), result: LookResult) -> Self {
        Self {
            looked_at: asked_at,
            is_new: true,
            height,
            resets,
            is_looking: false,
            has_failed: false,
            is_provisional: result != LookResult::AtHeight,
        }
    }

    /// Time of the next look if the head does not change; `None` during a look.
    pub(crate) fn due(&self, head: HeadStatus) -> Option<Instant> {
        if self.is_looking {
            return None;
        }
        let has_moved = (head.height, head.resets) != (self.height, self.resets);
        let is_due = has_moved || self.has_failed || self.is_provisional || !head.is_followed;
        let wait = if !is_due {
            QUIET_INTERVAL
        } else if has_moved && self.is_new {
            Duration::ZERO
        } else if head.height == self.height + 1 {
            BLOCK_INTERVAL
        } else {
            LOOK_INTERVAL
        };
        Some(self.looked_at + wait)
    }

    /// Starts a look.
    pub(crate) fn begin(&mut self, now: Instant, head: HeadStatus) {
        self.is_provisional = head.height != self.height;
        (self.looked_at, self.is_new, self.is_looking) = (now, false, true);
        (self.height, self.resets) = (head.height, head.resets);
    }

    /// Ends a look. Returns whether it is the second consecutive failure.
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

    /// Delays from each head to its look, in milliseconds, with these intervals between heads. The first look is
    /// `late_ms` late.
    fn delays(mut schedule: Schedule, late_ms: u64, head_ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let (mut now, mut late) = (schedule.looked_at, Duration::from_millis(late_ms));
        let (mut head, mut delays) =
            (HeadStatus { height: schedule.height, is_followed: true, resets: 0 }, Vec::new());
        for ms in head_ms {
            now += Duration::from_millis(ms);
            head.height += 1;
            let due = schedule.due(head).expect("no look is under way").max(now) + std::mem::take(&mut late);
            schedule.begin(due, head);
            schedule.end(LookResult::AtHeight);
            delays.push((due - now).as_millis() as u64);
        }
        delays
    }

    fn opened() -> Schedule {
        Schedule::new(Instant::now(), (1, 0), LookResult::AtHeight)
    }

    #[test]
    fn blocks_a_second_apart_are_looked_at_as_they_come_whenever_the_watch_began() {
        for first in [5, 400, 995] {
            let delays = delays(opened(), 0, [first].into_iter().chain([1000; 100]));
            assert!(delays.iter().all(|delay| *delay == 0), "{first}: {delays:?}");
        }
        let uneven = (0..1000).map(|block| 1000 + [30, -40, 10, 0][block % 4]).map(|ms: i64| ms as u64);
        assert!(delays(opened(), 0, uneven).iter().all(|delay| *delay == 0));
    }

    /// Such as a look that waited, or one before the first announced block.
    #[test]
    fn a_look_out_of_step_is_followed_by_looks_in_step() {
        let in_step = |delays: Vec<u64>| {
            assert!(delays.is_sorted_by(|before, after| after <= before), "{delays:?}");
            assert!(delays[10..].iter().all(|delay| *delay == 0), "{delays:?}");
            delays[0]
        };
        for late in [50, 150, 500, 950] {
            assert_eq!(in_step(delays(opened(), late, [1000; 30])), late);
        }
        for until_first in [100, 500, 899] {
            let mut schedule = opened();
            let unknown = HeadStatus { height: 1, is_followed: false, resets: 0 };
            schedule.begin(schedule.due(unknown).expect("no look is under way"), unknown);
            schedule.end(LookResult::AtHeight);
            let delays = delays(schedule, 0, [until_first].into_iter().chain([1000; 30]));
            assert_eq!(in_step(delays), 900 - until_first);
        }
    }

    #[test]
    fn faster_blocks_are_looked_at_once_a_second() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, (1, 0), LookResult::AtHeight);
        let mut looks = Vec::new();
        for ms in 0..20_000 {
            let (now, head) = (
                start + Duration::from_millis(ms),
                HeadStatus { height: ms / 50, is_followed: true, resets: 0 },
            );
            if schedule.due(head).is_some_and(|due| due <= now) {
                schedule.begin(now, head);
                schedule.end(LookResult::AtHeight);
                looks.push(ms);
            }
        }
        assert_eq!(looks.len(), 20, "{looks:?}");
        assert!(looks.is_sorted_by(|before, after| after - before >= 1000), "{looks:?}");
    }
}
