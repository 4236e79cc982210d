//! The fixture of the tests: a database with a history, folders for segments, the actors.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use actix::{Actor, Addr};
use futures_util::TryStreamExt;
use mesh_bus::{Open, OpenReply, Position, Pull, PullBudget, RequestScope, Totals};
use mesh_demo::{Plan, write_history};
use mesh_export::{Catalogue, Export, Listing, Metrics, Refresh, Rules, Sealed, Sealing};
use mesh_history::SegmentStore;
use mesh_problem::Problem;
use mesh_store::{Store, StoreConfig};
use mesh_testbed::Database;
use proto_msgs::StreamingOperation;
use tokio::sync::watch;
use tokio_postgres::Client;

/// A database and a temporary folder.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) folder: tempfile::TempDir,
}

impl Fixture {
    /// A demo network of so many blocks.
    pub(crate) async fn demo(blocks: u64) -> Self {
        let database = Database::fresh().await;
        let plan = Plan { blocks, markets: 2, parties: 12, ..Plan::default() };
        write_history(database.url(), &plan, |_, _| {}).await.unwrap();
        Self::over(database)
    }

    /// The chain `test-1` with blocks 1 to `to` and no other rows.
    pub(crate) async fn blocks(to: u64) -> Self {
        let fixture = Self::over(Database::fresh().await);
        let chain = "INSERT INTO chain (id) VALUES ('test-1')";
        fixture.database.connect().await.batch_execute(chain).await.unwrap();
        if to > 0 {
            fixture.write_blocks(1..=to).await;
        }
        fixture
    }

    fn over(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("scratch")).unwrap();
        Self { database, folder }
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    pub(crate) async fn write_blocks(&self, heights: RangeInclusive<u64>) {
        let sql = format!(
            "INSERT INTO blocks (height, block_time, hash) SELECT height,
                timestamptz '2024-01-01 00:00:00+00' + height * interval '1 s', 'ab'
                FROM generate_series({}, {}) AS height",
            heights.start(),
            heights.end()
        );
        self.database.connect().await.batch_execute(&sql).await.unwrap();
    }

    /// A sealer with its own segment store.
    pub(crate) fn sealing(&self, interval_blocks: i64) -> Sealing {
        let root = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        Sealing {
            database_url: self.database.url().to_owned(),
            segments: SegmentStore::open(root.to_str().unwrap()).unwrap(),
            rules: Rules { interval_blocks, retention_blocks: 0 },
            scratch: self.scratch(),
            metrics: Metrics::default(),
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&StoreConfig {
            url: self.database.url().to_owned(),
            replica_url: None,
            query_timeout: Duration::from_secs(10),
            point_connections: 1,
            list_connections: 2,
            name: "test".to_owned(),
        })
        .unwrap()
    }

    /// The actor of the workload over these segments.
    pub(crate) async fn export(&self, segments: &SegmentStore) -> Worker {
        let metrics = Metrics::default();
        let (sender, listing) = watch::channel(Listing::default());
        let period = Duration::from_secs(3600);
        let store = self.store();
        store.until_ready().await;
        let (held, readers) = (segments.clone(), store.clone());
        let catalogue = Catalogue::new(held, readers, period, None, sender, metrics.clone()).start();
        catalogue.send(Refresh).await.unwrap();
        let export = Export::new(store, segments.clone(), listing, catalogue.clone(), metrics, 16).start();
        Worker { export, catalogue }
    }
}

/// One replica.
pub(crate) struct Worker {
    pub(crate) export: Addr<Export>,
    pub(crate) catalogue: Addr<Catalogue>,
}

/// The result of a download from a byte to the end.
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    pub(crate) totals: Totals,
}

impl Worker {
    pub(crate) async fn open<R>(&self, request: &R, from_byte: u64) -> Result<OpenReply, Problem>
    where
        R: StreamingOperation + Clone,
        Export: actix::Handler<Open<R>>,
    {
        self.export
            .send(Open { request: request.clone(), from_byte, scope: RequestScope::default() })
            .await
            .unwrap()
    }

    /// Makes one pull; returns its bytes, the position of the next pull, and the totals at the end.
    pub(crate) async fn pull<R>(
        &self,
        request: &R,
        position: &Position,
        budget: PullBudget,
    ) -> Result<(Vec<u8>, Position, Option<Totals>), Problem>
    where
        R: StreamingOperation + Clone,
        Export: actix::Handler<Pull<R>>,
    {
        let pull = |position: &Position| {
            let (request, position) = (request.clone(), position.clone());
            Pull { request, position, budget, scope: RequestScope::default() }
        };
        let chunks = self.export.send(pull(position)).await.unwrap()?;
        let pieces: Vec<_> = chunks.pieces.try_collect().await?;
        assert!(pieces.len() <= budget.chunks as usize && !pieces.is_empty());
        let (last, others) = pieces.split_last().unwrap();
        assert!(others.iter().all(|piece| piece.end.is_none() && !piece.bytes.is_empty()));
        assert!(pieces.iter().all(|piece| piece.bytes.len() <= budget.chunk_bytes()));
        if let Some(next_position) = chunks.next_positions.first() {
            assert_eq!(*next_position, last.after, "the next pull begins where this one ended");
        }
        if let [next, behind, ..] = &chunks.next_positions[..] {
            let pieces: Vec<_> = self.export.send(pull(next)).await.unwrap()?.pieces.try_collect().await?;
            assert_eq!(pieces.last().map(|last| &last.after), Some(behind), "as does the one behind it");
        }
        let bytes = pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect();
        Ok((bytes, last.after.clone(), last.end))
    }

    /// Downloads from a byte to the end; workers and budgets take turns, one per pull.
    pub(crate) async fn whole<R>(
        workers: &[&Worker],
        request: &R,
        from_byte: u64,
        budgets: &[PullBudget],
    ) -> Whole
    where
        R: StreamingOperation + Clone,
        Export: actix::Handler<Open<R>> + actix::Handler<Pull<R>>,
    {
        let opened = workers[0].open(request, from_byte).await.unwrap();
        let (mut position, mut bytes) = (Position::new(opened.first).unwrap(), Vec::new());
        for turn in 0.. {
            let worker = workers[turn % workers.len()];
            let budget = budgets[turn % budgets.len()];
            let (more, after, end) = worker.pull(request, &position, budget).await.unwrap();
            bytes.extend(more);
            position = after;
            if let Some(totals) = end {
                return Whole { bytes, totals };
            }
        }
        unreachable!()
    }
}

/// The output of a `COPY` statement.
pub(crate) async fn copied(client: &Client, sql: &str) -> Vec<u8> {
    client.batch_execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'").await.unwrap();
    let rows: Vec<_> = client.copy_out(sql).await.unwrap().try_collect().await.unwrap();
    rows.concat()
}

pub(crate) fn sealed_names(sealed: Sealed) -> Vec<(u64, u64)> {
    let Sealed::Here(names) = sealed else { panic!("another sealer has the lock") };
    names.iter().map(|name| (name.height_from, name.height_to)).collect()
}
