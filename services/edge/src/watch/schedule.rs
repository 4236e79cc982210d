//! When a live query looks at its answer (W1): for each new head, at most once a second. No I/O and no clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::ask::heads::HeadStatus;

/// Least time between two looks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Longest time between two looks. Rows that are written late change an answer without a new head, and what
/// tells that nothing has changed (W4) should have looked.
pub(crate) const QUIET_INTERVAL: Duration = Duration::from_secs(10);

/// The looks of one live query.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When the last look began.
    looked_at: Instant,
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
    /// A schedule that begins with an answer that was asked for then, at this height of the head.
    pub(crate) fn new(asked_at: Instant, height: u64) -> Self {
        Self { looked_at: asked_at, height, is_looking: false, has_failed: false, is_provisional: true }
    }

    /// When to look next, if the head stays as it is; `None` during a look.
    pub(crate) fn due(&self, head: HeadStatus) -> Option<Instant> {
        if self.is_looking {
            return None;
        }
        // A head that falls was set back.
        let is_due =
            self.has_failed || self.is_provisional || !head.is_followed || head.height != self.height;
        Some(self.looked_at + if is_due { LOOK_INTERVAL } else { QUIET_INTERVAL })
    }

    /// Begins a look.
    pub(crate) fn begin(&mut self, now: Instant, head: HeadStatus) {
        self.is_provisional = head.height != self.height;
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
