//! Runs the demo network: a block about every second, with retries through restarts of the database.

use std::{future::Future, path::Path, pin::pin, time::Duration};

use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use crate::{
    decision::{Decision, Decisions},
    error::DemoError,
    feeder::Feeder,
    moment::Moment,
    plan::Plan,
    session::Head,
};

/// First wait after an error of the database, doubled up to [`LONGEST_WAIT`].
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Timeout of writing one block, after which the connection counts as dead.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// A notification of the running feeder.
#[derive(Debug)]
pub enum Event<'a> {
    /// A block was stored.
    Block(&'a Head),
    /// A temporary error; the next try is after the wait.
    Trouble {
        /// The error.
        error: &'a DemoError,
        /// Time until the next try.
        wait: Duration,
    },
}

/// Decides a block at each tick of a timer.
struct Ticks(Interval);

impl Decisions for Ticks {
    async fn decide(&mut self, height: u64) -> Decision {
        self.0.tick().await;
        Decision { height, time: Moment::now(), hash: None }
    }
}

/// Writes a block about every `every` until `stop` is done; see [`run_decided`].
///
/// # Errors
///
/// As [`run_decided`].
pub async fn run_live(
    url: &str,
    plan: &Plan,
    state_file: &Path,
    every: Duration,
    on_event: impl FnMut(Event<'_>),
    stop: impl Future<Output = ()>,
) -> Result<(), DemoError> {
    let mut ticks = interval(every.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    run_decided(url, plan, state_file, Ticks(ticks), on_event, stop).await
}

/// Writes each block once it is decided, until `stop` resolves. Retries temporary errors, such as a restart
/// of the database, without limit; returns an error only for permanent ones: a store of another network, a
/// state file that cannot be written.
///
/// # Errors
///
/// When the store is of another network, or the state file cannot be written.
pub async fn run_decided(
    url: &str,
    plan: &Plan,
    state_file: &Path,
    mut decisions: impl Decisions,
    mut on_event: impl FnMut(Event<'_>),
    stop: impl Future<Output = ()>,
) -> Result<(), DemoError> {
    let mut stop = pin!(stop);
    let mut feeder = None;
    let mut wait = SHORTEST_WAIT;
    loop {
        let outcome = tokio::select! {
            () = &mut stop => break,
            outcome = step(&mut feeder, url, plan, state_file, &mut decisions) => outcome,
        };
        match outcome {
            Ok(head) => {
                if let Some(head) = &head {
                    on_event(Event::Block(head));
                }
                wait = SHORTEST_WAIT;
            }
            Err(error) if error.is_passing() => {
                on_event(Event::Trouble { error: &error, wait });
                let pause = wait;
                wait = (wait * 2).min(LONGEST_WAIT);
                tokio::select! {
                    () = &mut stop => break,
                    () = sleep(pause) => {}
                }
            }
            Err(error) => return Err(error),
        }
    }
    match feeder {
        Some(mut feeder) => feeder.save().await,
        None => Ok(()),
    }
}

/// Opens the feeder when it is not open, else writes a block.
async fn step(
    feeder: &mut Option<Feeder>,
    url: &str,
    plan: &Plan,
    state_file: &Path,
    decisions: &mut impl Decisions,
) -> Result<Option<Head>, DemoError> {
    let Some(open) = feeder else {
        *feeder = Some(Feeder::open(url, plan, state_file).await?);
        return Ok(None);
    };
    let decision = decisions.decide(open.height() + 1).await;
    match timeout(WRITE_LIMIT, open.write(&decision)).await {
        Ok(outcome) => outcome.map(Some),
        Err(_) => {
            open.disconnect();
            Err(DemoError::Silent)
        }
    }
}
