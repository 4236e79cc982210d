//! Section "store": point reads of the store library in one process, compared with pgbench and the same
//! statement; and PostgreSQL's work for that statement, compared with the plain one.

use std::{cell::OnceCell, time::SystemTime};

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
};
use mesh_store::Store;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

use super::{
    baseline::open_store,
    comparison::{self, REQUESTS, Side},
    load::{Client, Pace},
    postgres_client::{Bench, PostgresClient},
    section::Figures,
    world::{FIRST_NUMBER, ROWS, STATEMENT, World},
};

/// Number of concurrent reads of the store.
const IN_FLIGHT: u64 = 64;
/// Number of pgbench's connections.
const PGBENCH_CLIENTS: u64 = 16;
/// The setting by which a statement is planned once per connection.
const PLANNED_ONCE: &str = "-c plan_cache_mode=force_generic_plan";
/// The plain statement that gives the same row.
const PLAIN: &str =
    "SELECT id, party_id, trim_scale(amount)::text, asset, status::text, ref, foreign_tx_hash,
        created_timestamp, withdrawn_timestamp, ext
    FROM withdrawals WHERE id = :n ORDER BY block_time DESC LIMIT 1";

/// Runs the comparison.
pub(super) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let pgbench = PostgresClient::find(&world.servers, "pgbench")?;
    world.withdrawals().await?;
    let (server, length) = (world.mesh.watch(&[POSTGRES]), world.length());
    let by_pgbench = |name: &str, statement: &str| {
        let bench = Bench { clients: PGBENCH_CLIENTS, settings: PLANNED_ONCE, length };
        let last = FIRST_NUMBER + ROWS.cast_signed() - 1;
        let statement = statement.replace("$1", ":n").replace("$2", "NULL");
        pgbench.side(name, &server, bench, &statement, FIRST_NUMBER..=last)
    };
    let (url, watched) = (world.servers.database_url.clone(), server.clone());
    let pace = Pace::closed(IN_FLIGHT, length);
    let by_store = move || {
        // All readers of a round share the store.
        let store = OnceCell::new();
        pace.run(&watched, |seed| {
            let store: Result<Store, String> = store.get_or_init(|| open(&url)).clone();
            async move {
                let (store, random) = (store?, SmallRng::seed_from_u64(seed));
                store.until_ready().await;
                Ok(Reader { store, random })
            }
        })
    };
    let sides = comparison::run_rounds([
        Side::blocking("store, 4 connections, 64 at a time", REQUESTS, by_store),
        by_pgbench("pgbench, 16 clients, 2 threads", STATEMENT)?,
        by_pgbench("pgbench, the plain statement", PLAIN)?,
    ])
    .await?;
    let [store, statement, plain] = &sides;
    let found = vec![store.rate() / statement.rate(), statement.cost() / plain.cost()];
    Ok(comparison::figures("the statement of GetWithdrawal, CPU of PostgreSQL", &sides, found))
}

fn open(url: &str) -> Result<Store, String> {
    open_store(url.to_owned()).map_err(|failure| failure.to_string())
}

/// Reads random rows by the store.
struct Reader {
    store: Store,
    random: SmallRng,
}

impl Reader {
    async fn read(&mut self) -> Result<(), Failure> {
        let number = FIRST_NUMBER + self.random.random_range(0..ROWS.cast_signed());
        let row = self.store.point(STATEMENT, &[&number.to_string(), &None::<SystemTime>], None).await;
        let row = row.map_err(|error| cannot("read by the store", &error))?;
        let found: Option<&str> = row.try_get("id").map_err(|error| cannot("read a row", &error))?;
        found.map(drop).ok_or_else(|| Failure::failed(format!("there is no withdrawal {number}")))
    }
}

impl Client for Reader {
    async fn call(&mut self) -> Result<bool, String> {
        self.read().await.map(|()| true).map_err(|failure| failure.to_string())
    }
}
