//! Writes blocks into the store, those of the demo network or empty ones: at a fixed period, or the blocks
//! that a consensus node has decided.

use std::{
    convert::Infallible,
    time::{Duration, UNIX_EPOCH},
};

use mesh_demo::{DemoError, Event, run_decided, run_live};
use mesh_devnode::Application;
use mesh_problem::error_chain;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_postgres::Client;

use crate::{
    config::Config,
    decided::{DecidedBlocks, decided_block},
    error::{NodeError, failed},
};

/// Timeout of writing one block. A database that takes longer is gone or frozen, so the connection is
/// renewed.
const BLOCK_DEADLINE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The statement that writes an empty block after the newest one and returns its height.
pub const NEXT_BLOCK: &str = include_str!("../sql/next_block.sql");
const DECIDED_BLOCK: &str = include_str!("../sql/decided_block.sql");

/// Writes blocks until `stop` and reports each stored one on `written`. With an application
/// they are the blocks of its consensus node.
pub(super) async fn write(
    config: &Config,
    application: Option<&Application>,
    mut stop: impl Future<Output = ()> + Unpin,
    written: &watch::Sender<()>,
) -> Result<(), NodeError> {
    let url = &config.database_url;
    if let Some((plan, state)) = &config.demo {
        let on_event = |event: Event<'_>| {
            if let Event::Block(_) = event {
                written.send_replace(());
            }
            log_event(&event);
        };
        let outcome = match application.cloned() {
            None => run_live(url, plan, state, config.block_period, on_event, &mut stop).await,
            Some(application) => {
                run_decided(url, plan, state, DecidedBlocks(application), on_event, &mut stop).await
            }
        };
        match outcome {
            Ok(()) => return Ok(()),
            // A history of an older release: only empty blocks can follow it.
            Err(error @ DemoError::Foreign(_)) => {
                tracing::warn!(
                    error = error_chain(&error),
                    "the demo network stands still, empty blocks follow"
                );
            }
            Err(error) => return Err(failed!("{}", error_chain(&error))),
        }
    }
    tokio::select! {
        never = grow(config, application, written) => match never {},
        () = stop => Ok(()),
    }
}

fn log_event(event: &Event<'_>) {
    match event {
        Event::Block(head) => tracing::debug!(height = head.height, "wrote a block"),
        Event::Trouble { error, wait } => {
            tracing::warn!(error = error_chain(error), ?wait, "no block could be written, trying again");
        }
    }
}

/// Writes empty blocks for ever.
async fn grow(config: &Config, application: Option<&Application>, written: &watch::Sender<()>) -> Infallible {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut count = 0;
        let on_stored = || {
            count += 1;
            written.send_replace(());
        };
        let error = match write_blocks(config, application, on_stored).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::warn!(error = error_chain(&*error), "no block could be written, trying again");
        pause = if count > 0 { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// Writes empty blocks over one connection until that fails.
async fn write_blocks(
    config: &Config,
    application: Option<&Application>,
    mut on_stored: impl FnMut(),
) -> Result<Infallible, Box<dyn std::error::Error>> {
    let connecting = mesh_store::connect(&config.database_url, "mesh node");
    let client = timeout(BLOCK_DEADLINE, connecting).await??;
    let mut period = interval(config.block_period);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        match application {
            None => {
                period.tick().await;
                timeout(BLOCK_DEADLINE, client.execute(NEXT_BLOCK, &[])).await??;
            }
            Some(application) => write_decided(&client, application).await?,
        }
        on_stored();
    }
}

/// Writes the next block of the node when there is one; a stored block is not written twice.
async fn write_decided(client: &Client, application: &Application) -> Result<(), Box<dyn std::error::Error>> {
    let newest = client.query_opt("SELECT height FROM last_block", &[]);
    let newest: i64 = timeout(BLOCK_DEADLINE, newest).await??.map_or(0, |row| row.get(0));
    let block = decided_block(application, newest.unsigned_abs() + 1).await;
    let (height, time) = (block.height.cast_signed(), UNIX_EPOCH + block.time);
    timeout(BLOCK_DEADLINE, client.execute(DECIDED_BLOCK, &[&height, &time, &block.hash])).await??;
    Ok(())
}

#[cfg(test)]
mod tests {
    use mesh_testbed::Database;

    use super::*;

    #[tokio::test]
    async fn empty_blocks_follow_each_other_in_height_time_and_hash() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        // Block times must stay in rising order after a block with a time in the future.
        client
            .execute("INSERT INTO blocks VALUES (now() + interval '1 hour', 41, repeat('a', 64))", &[])
            .await
            .unwrap();
        for height in [42_i64, 43] {
            assert_eq!(client.query_one(NEXT_BLOCK, &[]).await.unwrap().get::<_, i64>(0), height);
        }
        let rows = client
            .query(
                "SELECT height, hash, lag(block_time) OVER (ORDER BY height) < block_time FROM blocks",
                &[],
            )
            .await
            .unwrap();
        let heights: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let hashes: std::collections::BTreeSet<String> = rows.iter().map(|row| row.get(1)).collect();
        assert_eq!(heights, [41, 42, 43]);
        assert_eq!(hashes.len(), 3);
        assert!(
            hashes.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        );
        assert!(rows[1..].iter().all(|row| row.get::<_, bool>(2)));
    }

    #[tokio::test]
    async fn an_empty_chain_begins_at_height_1() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        assert_eq!(client.query_one(NEXT_BLOCK, &[]).await.unwrap().get::<_, i64>(0), 1);
    }
}
