//! Writes the history of a plan into a store, and builds the simulator at the height of a store.

use std::collections::BTreeMap;

use mesh_loader::{BlockWriter, LoadError};
use mesh_store::{TimeUs, error::StoreError};
use tokio::{sync::mpsc, task::spawn_blocking};
use tokio_postgres::{Client, Error, Row};

use crate::{
    error::DemoError,
    plan::{CHAIN_ID, Plan},
    rows::Rows,
    simulator::Simulator,
};

/// Number of blocks in one transaction of the bulk load.
const BATCH: u64 = 500;

/// Settings of the session, and the advisory lock that excludes a second writer of the history. A process
/// that has just ended may hold the lock for a moment.
const PREPARE: &str = "SET TIME ZONE 'UTC'; SET client_encoding TO 'UTF8'; SET lock_timeout TO '10s'; \
    SELECT pg_advisory_lock(7234308701667288420); RESET lock_timeout";

/// The stored blocks from a height on, or the newest one below, in rising height.
const LAST_BLOCKS: &str = "SELECT height, (extract(epoch FROM block_time) * 1000000)::int8, hash FROM blocks \
    WHERE height >= least($1, (SELECT max(height) FROM blocks)) ORDER BY height";

/// Ids and balances of all accounts whose balance is not zero.
const BALANCES: &str = "SELECT account_id, balance::text FROM current_balances WHERE balance <> 0";

struct StoredBlock {
    height: u64,
    time: TimeUs,
    hash: String,
}

/// Writes the plan's history into a store whose tables exist. An empty store gets all of it; one that has the
/// first part of the same history gets the rest; one with blocks above the history stays as it is; any other
/// store is refused and unchanged. `progress` is called with the number of blocks done and the total. Returns
/// the network at the newest block of the store.
///
/// # Errors
/// When the plan is not usable, the store is of another network, or the database fails.
pub async fn write_history(
    url: &str,
    plan: &Plan,
    progress: impl FnMut(u64, u64),
) -> Result<Simulator, DemoError> {
    plan.check()?;
    let mut client = mesh_store::connect(url, "mesh demo network").await.map_err(LoadError::from)?;
    client.batch_execute(PREPARE).await.map_err(failed("taking the writer's lock"))?;
    let simulator = catch_up(&client, plan).await?;
    fill(&mut client, simulator, progress).await
}

async fn fill(
    client: &mut Client,
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
                rows.append(simulator.next_history_block().rows);
            }
            if sender.blocking_send((rows, simulator.height())).is_err() {
                break;
            }
        }
        simulator
    });
    while let Some((rows, height)) = batches.recv().await {
        let writer = BlockWriter::begin(client).await?;
        rows.write(&writer).await?;
        writer.commit().await?;
        progress(height, total);
    }
    client.batch_execute("ANALYZE").await.map_err(failed("analysing the tables"))?;
    maker.await.map_err(|_| DemoError::Generator)
}

/// Builds the simulator at the height of the store from the stored blocks.
async fn catch_up(client: &Client, plan: &Plan) -> Result<Simulator, DemoError> {
    let simulator = Simulator::new(plan.clone())?;
    let height = plan.blocks.cast_signed();
    let rows = client.query(LAST_BLOCKS, &[&height]).await.map_err(failed("reading stored blocks"))?;
    let stored: Vec<StoredBlock> = rows.iter().map(stored_block).collect();
    let Some(head) = stored.last().map(|block| block.height) else { return Ok(simulator) };
    let chain =
        client.query_opt("SELECT id FROM chain", &[]).await.map_err(failed("reading the chain id"))?;
    match chain.map(|row| row.get::<_, String>(0)) {
        Some(id) if id == CHAIN_ID => {}
        Some(id) => return Err(DemoError::Foreign(format!("its chain id is {id}"))),
        None => return Err(DemoError::Foreign("it has blocks but no chain id".to_owned())),
    }
    let following = spawn_blocking(move || follow(simulator, &stored));
    let simulator = following.await.map_err(|_| DemoError::Generator)??;
    if head > plan.blocks {
        check_balances(client, &simulator).await?;
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

/// Blocks above the history may have executed transactions, which the store does not have: the balances show
/// it.
async fn check_balances(client: &Client, simulator: &Simulator) -> Result<(), DemoError> {
    let rows = client.query(BALANCES, &[]).await.map_err(failed("reading the balances"))?;
    let stored: BTreeMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    if stored != simulator.world.balances() {
        return Err(DemoError::Foreign("its balances are not those of this plan alone".to_owned()));
    }
    Ok(())
}

fn stored_block(row: &Row) -> StoredBlock {
    let height = row.get::<_, i64>(0).unsigned_abs();
    StoredBlock { height, time: TimeUs(row.get(1)), hash: row.get(2) }
}

fn failed(step: &'static str) -> impl FnOnce(Error) -> LoadError {
    move |source| StoreError::Database { step, source }.into()
}
