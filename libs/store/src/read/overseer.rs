//! The overseer of the pipelined connections: retires those on which nothing moves any more.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    StoreState,
    pipeline::{Pipeline, Progress},
    points::Shared,
};

/// Pause between two looks at all connections.
const LOOK: Duration = Duration::from_millis(100);

/// A connection that has finished nothing for this long, although there is something to do, gets no new reads
/// while there is another one.
const STUCK: Duration = Duration::from_millis(100);

/// A connection with a read that its caller has left, and that has finished nothing for this long since, is
/// retired.
const LEFT: Duration = Duration::from_millis(300);

/// Looks after the connections until the last handle of them is gone.
pub(super) async fn oversee(points: Weak<Shared>, mut server: watch::Receiver<StoreState>) {
    let mut records: Vec<Record> = Vec::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let has_gone = select! {
            _ = look.tick() => false,
            changed = server.changed() => {
                if changed.is_err() {
                    return;
                }
                !server.borrow_and_update().is_there
            }
        };
        let Some(points) = points.upgrade() else { return };
        records.resize_with(points.slots().len(), Record::default);
        for (slot, record) in points.slots().iter().zip(&mut records) {
            let Some(pipeline) = slot.get() else { continue };
            // A frozen server does not break its connections, so that whoever waits there must be told.
            if has_gone || record.look(&pipeline, Instant::now(), points.patience()) {
                pipeline.retire();
            }
        }
    }
}

/// What was seen of one connection.
#[derive(Default)]
struct Record {
    pipeline: Weak<Pipeline>,
    history: History,
}

impl Record {
    /// Looks at a connection and says whether it is to be retired.
    fn look(&mut self, pipeline: &Arc<Pipeline>, now: Instant, patience: Duration) -> bool {
        if self.pipeline.as_ptr() != Arc::as_ptr(pipeline) {
            *self = Self { pipeline: Arc::downgrade(pipeline), history: History::default() };
        }
        let verdict = self.history.look(pipeline.progress(), now, patience);
        pipeline.set_stuck(verdict.is_stuck);
        if verdict.needs_probe {
            let pipeline = Arc::clone(pipeline);
            tokio::spawn(async move { pipeline.probe().await });
        }
        verdict.is_lost
    }
}

/// How a connection got on.
#[derive(Default)]
struct History {
    last: Progress,
    /// When the last answer was first seen.
    answered_at: Option<Instant>,
    /// When the last leaving caller was first seen.
    left_at: Option<Instant>,
    is_probed: bool,
    /// How much had been sent when, as far as patience goes back.
    sent: VecDeque<(Instant, u64)>,
}

/// What to do with a connection.
#[derive(Debug, PartialEq, Eq, Default)]
struct Verdict {
    is_stuck: bool,
    needs_probe: bool,
    is_lost: bool,
}

impl History {
    fn look(&mut self, progress: Progress, now: Instant, patience: Duration) -> Verdict {
        let is_idle = progress.sent == progress.answered;
        let was_idle = self.last.sent == self.last.answered;
        if was_idle || progress.answered != self.last.answered {
            self.answered_at = Some(now);
            self.is_probed = false;
        }
        if progress.left != self.last.left {
            self.left_at = Some(now);
            self.is_probed = false;
        }
        self.last = progress;
        if is_idle {
            self.sent.clear();
            return Verdict::default();
        }
        self.sent.push_back((now, progress.sent));
        let mut is_late = false;
        while let Some(&(at, sent)) = self.sent.front()
            && now - at >= patience
        {
            is_late |= sent > progress.answered;
            self.sent.pop_front();
        }
        let still_for = self.answered_at.map_or(Duration::ZERO, |at| now - at);
        let left_for = self.left_at.map_or(Duration::ZERO, |at| now - at);
        let is_left = progress.left > progress.answered;
        // Whether the server has finished what was left, and nothing came after, only a probe can tell.
        let needs_probe = is_left && !self.is_probed;
        self.is_probed |= needs_probe;
        Verdict {
            is_stuck: still_for >= STUCK,
            needs_probe,
            is_lost: is_late || (is_left && still_for.min(left_for) >= LEFT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(1000);

    /// Looks as often as there are lines, [`LOOK`] apart.
    fn verdicts(lines: &[(u64, u64, u64)]) -> Vec<Verdict> {
        let (mut history, begin) = (History::default(), Instant::now());
        let look = |(turn, &(sent, answered, left)): (usize, &(u64, u64, u64))| {
            let now = begin + LOOK * u32::try_from(turn).expect("a few lines");
            history.look(Progress { sent, answered, left }, now, PATIENCE)
        };
        lines.iter().enumerate().map(look).collect()
    }

    #[test]
    fn a_busy_connection_is_let_be_although_callers_leave() {
        let lines: Vec<_> = (1..40).map(|turn| (turn * 10, turn * 10 - 5, turn * 10 - 6)).collect();
        assert!(verdicts(&lines).iter().all(|verdict| *verdict == Verdict::default()));
    }

    #[test]
    fn a_read_that_was_left_is_probed_once_and_its_connection_lost_after_300_ms() {
        let seen = verdicts(&[(1, 0, 0), (1, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)]);
        let probes: Vec<_> = seen.iter().map(|verdict| verdict.needs_probe).collect();
        assert_eq!(probes, [false, true, false, false, false]);
        let lost: Vec<_> = seen.iter().map(|verdict| verdict.is_lost).collect();
        assert_eq!(lost, [false, false, false, false, true]);
        assert!(seen[1..].iter().all(|verdict| verdict.is_stuck));
    }

    #[test]
    fn an_answered_probe_clears_a_connection() {
        let seen = verdicts(&[(1, 0, 1), (2, 2, 1), (2, 2, 1), (2, 2, 1), (2, 2, 1)]);
        assert!(seen[0].needs_probe);
        assert!(seen[1..].iter().all(|verdict| *verdict == Verdict::default()));
    }

    #[test]
    fn a_read_older_than_patience_is_lost_although_others_end() {
        let slow: Vec<_> = (0..12).map(|turn| (100 + turn, turn, 0)).collect();
        let lost: Vec<_> = verdicts(&slow).iter().map(|verdict| verdict.is_lost).collect();
        assert_eq!(lost.iter().position(|is_lost| *is_lost), Some(10), "{lost:?}");
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut lines = vec![(5, 5, 3); 30];
        lines.push((6, 5, 3));
        assert!(verdicts(&lines).iter().all(|verdict| *verdict == Verdict::default()));
    }
}
