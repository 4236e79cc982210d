//! The development node: a process of its own that keeps the chain of a mesh growing, a block about every second.
//!
//! Comes in: where the database is, and what lives in it, by variables. Goes out: new blocks; on the demo network
//! with everything that happens in them, otherwise empty ones.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::NoTls;

use crate::failure::{Failure, with_causes};
use crate::signals::Signals;

/// The variable that names the database.
pub(crate) const DATABASE_URL: &str = "MESH_DATABASE_URL";

const BLOCK_PERIOD: Duration = Duration::from_secs(1);
/// A database that takes longer for one block is gone or frozen; a new connection finds out which.
const BLOCK_DEADLINE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const NEXT_BLOCK: &str = include_str!("../sql/next_block.sql");

/// Runs until asked to stop. A database that went away is waited for.
pub(crate) async fn run() -> Result<(), Failure> {
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_max_level(tracing::Level::INFO).init();
    let mut signals = Signals::watch()?;
    let url = std::env::var(DATABASE_URL).map_err(|_| {
        Failure::configuration(format!("{DATABASE_URL} is not set; let `mesh up` start the development node"))
    })?;
    tokio::select! {
        never = grow(&url) => match never {},
        () = signals.stop() => Ok(()),
    }
}

/// Writes empty blocks for ever.
async fn grow(url: &str) -> Infallible {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut written = 0;
        let error = match write_blocks(url, &mut written).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::warn!(error = with_causes(&*error), "no block could be written, trying again");
        pause = if written > 0 { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// Writes empty blocks over one connection until that fails.
async fn write_blocks(url: &str, written: &mut u64) -> Result<Infallible, Box<dyn std::error::Error>> {
    let (client, connection) = timeout(BLOCK_DEADLINE, tokio_postgres::connect(url, NoTls)).await??;
    let writing = async {
        let mut period = interval(BLOCK_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            timeout(BLOCK_DEADLINE, client.execute(NEXT_BLOCK, &[])).await??;
            *written += 1;
        }
    };
    // The connection is driven here and goes with its client.
    tokio::select! {
        failed = writing => failed,
        ended = connection => {
            ended?;
            Err("the database closed the connection".into())
        }
    }
}
