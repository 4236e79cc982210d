//! Writes the history of a plan into a store, and builds the simulator at the height of a store.

use tokio::{sync::mpsc, task::spawn_blocking};

use crate::{
    error::DemoError,
    plan::{CHAIN_ID, Plan},
    rows::Rows,
    session::{Session, StoredBlock},
    simulator::Simulator,
};

/// Number of blocks in one transaction of the bulk load.
const BATCH: u64 = 500;

/// Writes the plan's history into a store whose tables exist. An empty store gets all of it; one that has the
/// first part of the same history gets the rest; one with blocks above the history stays as it is; any other
/// store is refused and unchanged. `progress` is called with the number of blocks done and the total. Returns the
/// network at the newest block of the store.
///
/// # Errors
///
/// When the plan is not usable, the store is of another network, or the database fails.
pub async fn write_history(
    url: &str,
    plan: &Plan,
    progress: impl FnMut(u64, u64),
) -> Result<Simulator, DemoError> {
    plan.check()?;
    let mut session = Session::connect(url).await?;
    let simulator = catch_up(&session, plan).await?;
    fill(&mut session, simulator, progress).await
}

/// Writes the missing part of the history.
async fn fill(
    session: &mut Session,
    mut simulator: Simulator,
    mut progress: impl FnMut(u64, u64),
) -> Result<Simulator, DemoError> {
    let total = simulator.plan().blocks;
    progress(simulator.height().min(total), total);
    if simulator.height() >= total {
        return Ok(simulator);
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
        progress(height, total);
    }
    session.analyze().await?;
    maker.await.map_err(|_| DemoError::Generator)
}

/// Builds the simulator at the height of the store from the stored blocks.
async fn catch_up(session: &Session, plan: &Plan) -> Result<Simulator, DemoError> {
    let simulator = Simulator::new(plan.clone())?;
    let stored = session.last_blocks(plan.blocks).await?;
    let Some(head) = stored.last().map(|block| block.height) else { return Ok(simulator) };
    match session.chain_id().await? {
        Some(id) if id == CHAIN_ID => {}
        Some(id) => return Err(DemoError::Foreign(format!("its chain id is {id}"))),
        None => return Err(DemoError::Foreign("it has blocks but no chain id".to_owned())),
    }
    let following = spawn_blocking(move || follow(simulator, &stored));
    let simulator = following.await.map_err(|_| DemoError::Generator)??;
    // Blocks above the history may have executed transactions, which the store does not have.
    let balances = simulator.balances().filter(|(_, balance)| *balance != 0);
    let balances = balances.map(|(account, balance)| (account.to_owned(), balance.to_string())).collect();
    if head > plan.blocks && session.balances().await? != balances {
        return Err(DemoError::Foreign("its balances are not those of this plan alone".to_owned()));
    }
    Ok(simulator)
}

/// Simulates the blocks of a store again, of which it gets the last of the history and those above.
fn follow(mut simulator: Simulator, stored: &[StoredBlock]) -> Result<Simulator, DemoError> {
    for StoredBlock { height, time, hash } in stored {
        // Blocks of the written history have the simulator's hash, later ones a node's.
        if *height > simulator.plan().blocks {
            simulator.decided_block(*time, hash, &[]);
            continue;
        }
        while simulator.height() < *height {
            simulator.next_history_block();
        }
        if simulator.hash() != hash {
            let text = format!("block {height} is {hash}, which this plan and this release do not make");
            return Err(DemoError::Foreign(text));
        }
    }
    Ok(simulator)
}
