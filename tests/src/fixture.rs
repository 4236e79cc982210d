//! The small database of the cases and rules: `cases/fixture.sql`, a few rows of every kind.

use std::time::Duration;

use mesh_testbed::{Database, Mesh, MeshSetup, retry};
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::{NO_CACHE, client::MeshClient, shared::Shared};

/// Height of the newest block of the fixture.
pub const HEIGHT: &str = "3";
/// Time of that block, nanoseconds since the Unix epoch.
pub const BLOCK_TIME: &str = "1687258799120456000";

/// A market with trades.
pub const MARKET: &str = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
/// A party with accounts, delegations and rewards.
pub const PARTY: &str = "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1";
/// A validator node.
pub const NODE: &str = "c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1";
/// A finalised withdrawal.
pub const WITHDRAWAL: &str = "d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1";
/// An order that is traded in part.
pub const ORDER: &str = "1111111111111111111111111111111111111111111111111111111111111111";
/// An external oracle spec.
pub const ORACLE_SPEC: &str = "e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1";
/// An asset.
pub const ASSET: &str = "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1";
/// The download of the ledger of [`PARTY`] in [`ASSET`].
pub const LEDGER: &str = "/api/v2/ledgerentry/export\
    ?partyId=b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1\
    &assetId=f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1";
/// A well-formed id that no row has.
pub const UNKNOWN_ID: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

/// Creates a database for one test that holds the fixture.
pub async fn database() -> Database {
    let database = Database::fresh().await;
    let inserted = database.connect().await.batch_execute(include_str!("../cases/fixture.sql")).await;
    inserted.unwrap_or_else(|error| panic!("the fixture does not load: {:?}", error.as_db_error()));
    database
}

/// Starts a mesh for one test over its own fixture database; the client is a new one.
pub async fn start(
    configure: impl for<'a> FnOnce(MeshSetup<'a>) -> MeshSetup<'a>,
) -> (Database, Mesh, MeshClient) {
    let SharedMesh { database, mesh } = SharedMesh::start(database().await, configure).await;
    let client = MeshClient::new(&mesh);
    (database, mesh, client)
}

/// Runs a test on a mesh over the fixture whose tables it may lock and whose services it may stop. Such tests
/// wait for each other; each releases its locks, and services that have ended are started again before the next
/// one. The mesh has no cache, and its queries may take a minute.
pub fn exclusively(test: impl AsyncFnOnce(&Database, &mut Mesh)) {
    static MESH: Shared<SharedMesh> = Shared::new();
    let start = async || {
        let (name, value) = NO_CACHE;
        let database = database().await;
        SharedMesh::start(database, |setup| setup.env(name, value).env("MESH_QUERY_TIMEOUT_MS", "60000"))
            .await
    };
    MESH.run(start, async |SharedMesh { database, mesh }| {
        mesh.restart_ended().await;
        test(database, mesh).await;
    });
}

/// A mesh that all tests of this process share; they only read.
#[derive(Debug)]
pub struct SharedMesh {
    /// Its database.
    pub database: Database,
    /// Its services.
    pub mesh: Mesh,
}

impl SharedMesh {
    async fn start(
        database: Database,
        configure: impl for<'a> FnOnce(MeshSetup<'a>) -> MeshSetup<'a>,
    ) -> Self {
        let mesh = configure(Mesh::configure(&database)).start().await;
        Self { database, mesh }
    }
}

impl MeshClient {
    /// A client of the mesh over the fixture.
    pub async fn fixture() -> Self {
        Self::new(&mesh().await.mesh)
    }

    /// A client of the mesh over the fixture whose history is sealed.
    pub async fn sealed_fixture() -> Self {
        let sealed = Self::new(&sealed_mesh().await.mesh);
        sealed.until_sealed(&SEALED).await;
        sealed
    }

    /// A client of the mesh over a store without any row.
    pub async fn empty() -> Self {
        static SHARED: OnceCell<SharedMesh> = OnceCell::const_new();
        let start = async || SharedMesh::start(Database::fresh().await, |setup| setup).await;
        Self::new(&SHARED.get_or_init(start).await.mesh)
    }
}

/// The shared mesh over the fixture.
pub async fn mesh() -> &'static SharedMesh {
    static SHARED: OnceCell<SharedMesh> = OnceCell::const_new();
    SHARED.get_or_init(async || SharedMesh::start(database().await, |setup| setup).await).await
}

/// The spans in which [`sealed_mesh`] seals the fixture.
pub const SEALED: [(u64, u64); 3] = [(1, 1), (2, 2), (3, 3)];

/// The shared mesh over the fixture that seals a segment for each block.
pub async fn sealed_mesh() -> &'static SharedMesh {
    static SHARED: OnceCell<SharedMesh> = OnceCell::const_new();
    let start = async || {
        let database = database().await;
        SharedMesh::start(database, |setup| setup.env("MESH_HISTORY_INTERVAL_BLOCKS", "1")).await
    };
    SHARED.get_or_init(start).await
}

/// A table with an exclusive lock: statements that read it wait. Dropping this releases the lock.
#[derive(Debug)]
pub struct TableLock {
    holder: Client,
    /// A transaction caches `pg_stat_activity` at its first read, so another connection reads it.
    watcher: Client,
}

impl TableLock {
    /// Locks a table.
    pub async fn acquire(database: &Database, table: &str) -> Self {
        let (holder, watcher) = tokio::join!(database.connect(), database.connect());
        let locked =
            holder.batch_execute(&format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await;
        locked.unwrap_or_else(|error| panic!("cannot lock {table}: {error}"));
        Self { holder, watcher }
    }

    /// Releases the lock.
    pub async fn release(self) {
        self.holder.batch_execute("ROLLBACK").await.unwrap_or_else(|error| panic!("cannot unlock: {error}"));
    }

    /// Waits until a workload has at least this many statements running (repeated reads count again), or none
    /// at all for 0; panics when that takes longer than `at_most`.
    pub async fn await_queries(&self, workload: &str, count: i64, at_most: Duration) {
        let counted =
            "SELECT count(*), string_agg(now() - query_start || ': ' || query, E'\\n') FROM pg_stat_activity
            WHERE datname = current_database() AND state = 'active' AND application_name = $1";
        retry(at_most, async || {
            let row = self.watcher.query_one(counted, &[&format!("mesh {workload}")]).await;
            let row = row.unwrap_or_else(|error| panic!("cannot count queries: {error}"));
            let (running, texts): (i64, Option<String>) = (row.get(0), row.get(1));
            if running == count || (count > 0 && running > count) {
                return Ok(());
            }
            Err(format!("{running} statements of {workload} are running, not {count}: {texts:?}"))
        })
        .await;
    }
}
