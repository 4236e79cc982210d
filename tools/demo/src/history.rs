//! Writes the history of a plan into a store, and builds the simulator at the height of a store.

use std::time::Duration;

use tokio::{sync::mpsc, task::spawn_blocking, time::sleep};

use crate::{
    error::DemoError,
    plan::{CHAIN_ID, Plan},
    rows::Rows,
    session::{Head, Session},
    simulator::Simulator,
};

/// Number of blocks in one transaction of the bulk load.
const BATCH: u64 = 500;

/// Number of blocks read at once when the simulator replays a store.
const PAGE: i64 = 10_000;

/// Number of tries, five per second, to get the lock of a store from another session.
const LOCK_ATTEMPTS: u32 = 50;

/// The result of a bulk load.
#[derive(Clone, Debug)]
pub struct Written {
    /// Blocks written, without those that the store had before.
    pub blocks: u64,
    /// Rows written, over all tables.
    pub rows: u64,
    /// The network at the newest block of the store.
    pub simulator: Simulator,
}

/// Writes the plan's history into a store whose tables exist. An empty store gets all of it; one that has the
/// first part of the same history gets the rest; one with blocks above the history stays as it is; any other
/// store is refused and unchanged. `progress` is called with the number of blocks done and the total.
///
/// # Errors
///
/// When the plan is not usable, the store is of another network, or the database fails.
pub async fn write_history(
    url: &str,
    plan: &Plan,
    progress: impl FnMut(u64, u64),
) -> Result<Written, DemoError> {
    plan.check()?;
    let mut session = connect_with_retry(url).await?;
    let simulator = catch_up(&session, plan).await?;
    fill(&mut session, simulator, progress).await
}

/// Connects, with retries because a process that has just ended may still have the lock.
async fn connect_with_retry(url: &str) -> Result<Session, DemoError> {
    for _ in 0..LOCK_ATTEMPTS {
        match Session::connect(url).await {
            Err(DemoError::Busy) => sleep(Duration::from_millis(200)).await,
            outcome => return outcome,
        }
    }
    Session::connect(url).await
}

/// Writes the missing part of the history.
async fn fill(
    session: &mut Session,
    mut simulator: Simulator,
    mut progress: impl FnMut(u64, u64),
) -> Result<Written, DemoError> {
    let (total, first) = (simulator.plan().blocks, simulator.height());
    let (mut blocks, mut written_rows) = (0, 0);
    progress(first.min(total), total);
    if first >= total {
        return Ok(Written { blocks, rows: written_rows, simulator });
    }
    // Rows are made on another thread while the database loads the previous batch.
    let (sender, mut batches) = mpsc::channel::<(Rows, u64)>(2);
    let maker = spawn_blocking(move || {
        while simulator.height() < total {
            let mut rows = Rows::default();
            for _ in 0..BATCH.min(total - simulator.height()) {
                rows.append(&simulator.next_history_block().rows);
            }
            if sender.blocking_send((rows, simulator.height())).is_err() {
                break;
            }
        }
        simulator
    });
    while let Some((rows, height)) = batches.recv().await {
        session.write(&rows).await?;
        written_rows += rows.total();
        blocks = height - first;
        progress(height, total);
    }
    let simulator = maker.await.map_err(|_| DemoError::Generator)?;
    session.analyze().await?;
    Ok(Written { blocks, rows: written_rows, simulator })
}

/// Builds the simulator at the height of the store from the stored blocks.
async fn catch_up(session: &Session, plan: &Plan) -> Result<Simulator, DemoError> {
    let Some(head) = session.head().await? else {
        return Simulator::new(plan.clone());
    };
    match session.chain_id().await? {
        Some(id) if id == CHAIN_ID => {}
        Some(id) => return Err(DemoError::Foreign(format!("its chain id is {id}"))),
        None => return Err(DemoError::Foreign("it has blocks but no chain id".to_owned())),
    }
    let simulator = follow(session, Simulator::new(plan.clone())?, &head).await?;
    // Blocks above the history may have executed transactions, which the store does not have.
    let balances = simulator.balances().filter(|(_, balance)| *balance != 0);
    let balances = balances.map(|(account, balance)| (account.to_owned(), balance.to_string())).collect();
    if head.height > plan.blocks && session.balances().await? != balances {
        return Err(DemoError::Foreign("its balances are not those of this plan alone".to_owned()));
    }
    Ok(simulator)
}

/// Simulates the stored blocks again, with their stored times, up to the head.
async fn follow(session: &Session, mut simulator: Simulator, head: &Head) -> Result<Simulator, DemoError> {
    while simulator.height() < head.height {
        let page = session.blocks_after(simulator.height(), PAGE).await?;
        simulator = spawn_blocking(move || follow_page(simulator, &page))
            .await
            .map_err(|_| DemoError::Generator)??;
    }
    if simulator.hash() == head.hash { Ok(simulator) } else { Err(other_block(head)) }
}

fn follow_page(mut simulator: Simulator, page: &[Head]) -> Result<Simulator, DemoError> {
    if page.is_empty() {
        return Err(DemoError::Foreign(format!("block {} is missing", simulator.height() + 1)));
    }
    for stored in page {
        if stored.height != simulator.height() + 1 {
            return Err(DemoError::Foreign(format!("block {} is missing", simulator.height() + 1)));
        }
        // Blocks of the written history have the simulator's hash, later ones a node's.
        if stored.height > simulator.plan().blocks {
            simulator.decided_block(stored.time, &stored.hash, &[]);
        } else if simulator.next_block(stored.time).hash != stored.hash {
            return Err(other_block(stored));
        }
    }
    Ok(simulator)
}

fn other_block(stored: &Head) -> DemoError {
    DemoError::Foreign(format!(
        "block {} is {}, which this plan and this release do not make",
        stored.height, stored.hash
    ))
}
