//! Keeps the demo network living: a block about every second, through restarts of the database and of itself.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::error::DemoError;
use crate::feeder::Feeder;
use crate::moment::Moment;
use crate::plan::Plan;
use crate::session::Head;

/// First wait after trouble with the database, doubled up to [`LONGEST_WAIT`].
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Longest time that the writing of one block may take before the connection counts as dead.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// What the feeder tells while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A block was stored.
    Block(&'a Head),
    /// Something passing went wrong; the next try comes after the wait.
    Trouble {
        /// What went wrong.
        error: &'a DemoError,
        /// Time until the next try.
        wait: Duration,
    },
}

/// Writes a block about every `every` until `stop` is done. Waits out everything that passes, such as a database
/// that restarts, and ends with an error only for what does not: a store of another network, a state file that
/// cannot be written.
pub async fn run_live(
    url: &str,
    plan: &Plan,
    state_file: &Path,
    every: Duration,
    mut tell: impl FnMut(Event<'_>),
    stop: impl Future<Output = ()>,
) -> Result<(), DemoError> {
    let mut stop = pin!(stop);
    let mut feeder = None;
    let mut wait = SHORTEST_WAIT;
    let mut ticks = interval(every.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let step = step(&mut feeder, url, plan, state_file);
        let outcome = tokio::select! {
            () = &mut stop => break,
            outcome = step => outcome,
        };
        let pause = match outcome {
            Ok(head) => {
                if let Some(head) = &head {
                    tell(Event::Block(head));
                }
                wait = SHORTEST_WAIT;
                None
            }
            Err(error) if error.is_passing() => {
                tell(Event::Trouble { error: &error, wait });
                let pause = wait;
                wait = (wait * 2).min(LONGEST_WAIT);
                Some(pause)
            }
            Err(error) => return Err(error),
        };
        tokio::select! {
            () = &mut stop => break,
            () = async {
                match pause {
                    Some(pause) => sleep(pause).await,
                    None => { ticks.tick().await; }
                }
            } => {}
        }
    }
    match feeder {
        Some(mut feeder) => feeder.save().await,
        None => Ok(()),
    }
}

/// Opens the feeder when there is none, writes a block otherwise.
async fn step(
    feeder: &mut Option<Feeder>,
    url: &str,
    plan: &Plan,
    state_file: &Path,
) -> Result<Option<Head>, DemoError> {
    let Some(open) = feeder else {
        *feeder = Some(Feeder::open(url, plan, state_file).await?);
        return Ok(None);
    };
    match timeout(WRITE_LIMIT, open.write_next(Moment::now())).await {
        Ok(outcome) => outcome.map(Some),
        Err(_) => {
            open.disconnect();
            Err(DemoError::Silent)
        }
    }
}
