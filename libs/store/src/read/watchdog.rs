//! The watchdog of the pipelined connections: retires those that make no progress.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    StoreState,
    activity::ReadActivity,
    pipeline::{Pipeline, Progress},
    slot::Slot,
};

/// Pause between two checks of all connections while statements are sent or under way.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The same otherwise: then a check only notices that the pool was dropped.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A busy connection without an answer for this long gets no new reads while there is another one.
const STUCK_AFTER: Duration = Duration::from_millis(100);

/// A connection with an abandoned read and without an answer for this long is retired.
const ABANDONED_AFTER: Duration = Duration::from_millis(300);

/// Checks the connections until the pool is dropped. `read_timeout` is the limit of one read; when `server`
/// goes down, all connections are retired.
pub(super) async fn watchdog(
    slots: Weak<[Arc<Slot>]>,
    read_timeout: Duration,
    mut server: watch::Receiver<StoreState>,
    activity: Arc<ReadActivity>,
) {
    let mut healths: Vec<Health> = Vec::new();
    let mut begins = activity.begins();
    let mut is_idle = true;
    loop {
        let is_down = select! {
            () = sleep(if is_idle { IDLE_CHECK_INTERVAL } else { CHECK_INTERVAL }) => false,
            Ok(()) = begins.changed(), if is_idle => false,
            changed = server.changed() => {
                if changed.is_err() {
                    return;
                }
                !server.borrow_and_update().is_there
            }
        };
        let Some(slots) = slots.upgrade() else { return };
        healths.resize_with(slots.len(), Health::default);
        is_idle = !activity.is_busy();
        for (slot, health) in slots.iter().zip(&mut healths) {
            let Some(pipeline) = slot.get() else { continue };
            let progress = pipeline.progress();
            is_idle &= progress.under_way() == 0;
            // A frozen server does not close its connections: retiring them fails the pending reads.
            if is_down || health.update(&pipeline, Instant::now(), read_timeout) {
                pipeline.retire();
            }
        }
    }
}

/// The health of the connection in one slot.
#[derive(Default)]
struct Health {
    pipeline: Weak<Pipeline>,
    history: History,
}

impl Health {
    /// Updates the health from the connection's progress; returns whether it is to be retired.
    fn update(&mut self, pipeline: &Arc<Pipeline>, now: Instant, read_timeout: Duration) -> bool {
        if self.pipeline.as_ptr() != Arc::as_ptr(pipeline) {
            *self = Self { pipeline: Arc::downgrade(pipeline), history: History::default() };
        }
        let diagnosis = self.history.update(pipeline.progress(), now, read_timeout);
        pipeline.set_stuck(diagnosis.is_stuck);
        if diagnosis.needs_probe {
            let pipeline = Arc::clone(pipeline);
            tokio::spawn(async move { pipeline.probe().await });
        }
        diagnosis.is_lost
    }
}

/// The progress of a connection over time.
#[derive(Default)]
struct History {
    last: Progress,
    /// When a check first observed the newest answer, or the connection was last idle.
    answered_at: Option<Instant>,
    /// When a check first observed the newest abandoned read.
    abandoned_at: Option<Instant>,
    is_probed: bool,
    /// Statements sent at each check of the last `read_timeout`.
    sent: VecDeque<(Instant, u64)>,
}

/// What to do with a connection.
#[derive(Debug, PartialEq, Eq, Default)]
struct Diagnosis {
    is_stuck: bool,
    needs_probe: bool,
    is_lost: bool,
}

impl History {
    fn update(&mut self, progress: Progress, now: Instant, read_timeout: Duration) -> Diagnosis {
        let is_idle = progress.under_way() == 0;
        let was_idle = self.last.under_way() == 0;
        if was_idle || progress.answered != self.last.answered {
            self.answered_at = Some(now);
            self.is_probed = false;
        }
        if progress.abandoned != self.last.abandoned {
            self.abandoned_at = Some(now);
            self.is_probed = false;
        }
        self.last = progress;
        if is_idle {
            self.sent.clear();
            return Diagnosis::default();
        }
        self.sent.push_back((now, progress.sent));
        let mut is_late = false;
        while let Some(&(at, sent)) = self.sent.front()
            && now - at >= read_timeout
        {
            is_late |= sent > progress.answered;
            self.sent.pop_front();
        }
        let still_for = self.answered_at.map_or(Duration::ZERO, |at| now - at);
        let abandoned_for = self.abandoned_at.map_or(Duration::ZERO, |at| now - at);
        let is_abandoned = progress.abandoned > progress.answered;
        // When nothing was sent after an abandoned read, only a probe shows whether the server has finished
        // it.
        let needs_probe = is_abandoned && !self.is_probed;
        self.is_probed |= needs_probe;
        Diagnosis {
            is_stuck: still_for >= STUCK_AFTER,
            needs_probe,
            is_lost: is_late || (is_abandoned && still_for.min(abandoned_for) >= ABANDONED_AFTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ_TIMEOUT: Duration = Duration::from_millis(1000);

    /// One check per line of (sent, answered, abandoned), [`CHECK_INTERVAL`] apart.
    fn diagnose(lines: &[(u64, u64, u64)]) -> Vec<Diagnosis> {
        let (mut history, begin) = (History::default(), Instant::now());
        let check = |(turn, &(sent, answered, abandoned)): (usize, &(u64, u64, u64))| {
            let now = begin + CHECK_INTERVAL * u32::try_from(turn).expect("a few lines");
            history.update(Progress { sent, answered, abandoned }, now, READ_TIMEOUT)
        };
        lines.iter().enumerate().map(check).collect()
    }

    #[test]
    fn a_busy_connection_stays_although_callers_leave() {
        let lines: Vec<_> = (1..40).map(|turn| (turn * 10, turn * 10 - 5, turn * 10 - 6)).collect();
        assert!(diagnose(&lines).iter().all(|diagnosis| *diagnosis == Diagnosis::default()));
    }

    #[test]
    fn an_abandoned_read_is_probed_once_and_its_connection_lost_after_300_ms() {
        let diagnoses = diagnose(&[(1, 0, 0), (1, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)]);
        let probes: Vec<_> = diagnoses.iter().map(|diagnosis| diagnosis.needs_probe).collect();
        assert_eq!(probes, [false, true, false, false, false]);
        let lost: Vec<_> = diagnoses.iter().map(|diagnosis| diagnosis.is_lost).collect();
        assert_eq!(lost, [false, false, false, false, true]);
        assert!(diagnoses[1..].iter().all(|diagnosis| diagnosis.is_stuck));
    }

    #[test]
    fn an_answered_probe_clears_a_connection() {
        let diagnoses = diagnose(&[(1, 0, 1), (2, 2, 1), (2, 2, 1), (2, 2, 1), (2, 2, 1)]);
        assert!(diagnoses[0].needs_probe);
        assert!(diagnoses[1..].iter().all(|diagnosis| *diagnosis == Diagnosis::default()));
    }

    #[test]
    fn a_read_over_its_time_limit_costs_the_connection_although_others_end() {
        let slow: Vec<_> = (0..12).map(|turn| (100 + turn, turn, 0)).collect();
        let lost: Vec<_> = diagnose(&slow).iter().map(|diagnosis| diagnosis.is_lost).collect();
        assert_eq!(lost.iter().position(|is_lost| *is_lost), Some(10), "{lost:?}");
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut lines = vec![(5, 5, 3); 30];
        lines.push((6, 5, 3));
        assert!(diagnose(&lines).iter().all(|diagnosis| *diagnosis == Diagnosis::default()));
    }
}
