//! Stores with random rows, and the requests whose answers are compared.

use mesh_oracles::{Listing, Oracle, Question, query};
use mesh_testbed::{Database, Mesh};
use mesh_tests::{MeshClient, assert_same, bases, filtered, random_rows};
use proto_msgs::{OperationInfo, v2::Pagination};
use rand::{SeedableRng as _, rngs::SmallRng};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::paging::seeds;

const ROWS: usize = 200;

/// A mesh over random rows. The edge does not cache, because the store has no block.
pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) mesh: Mesh,
    seed: u64,
}

/// A list with filters.
pub(crate) struct View {
    /// Path and filters.
    pub(crate) target: String,
    /// The rows that pass.
    pub(crate) listing: Listing,
}

impl World {
    /// A world of its own for one test; that of seed 0 is empty.
    pub(crate) async fn start(seed: u64) -> Self {
        let (database, rows) = (Database::fresh().await, if seed == 0 { 0 } else { ROWS });
        random_rows::insert(&database.connect().await, rows, &mut SmallRng::seed_from_u64(seed)).await;
        let mesh = Mesh::start(&database).await;
        Self { database, mesh, seed }
    }

    /// Worlds that tests only read: those of all seeds, and an empty one.
    pub(crate) async fn all() -> &'static [Self] {
        static SHARED: OnceCell<Vec<World>> = OnceCell::const_new();
        let start = async || {
            let mut all = Vec::new();
            for seed in [0].into_iter().chain(seeds()) {
                all.push(Self::start(seed).await);
            }
            all
        };
        SHARED.get_or_init(start).await
    }

    pub(crate) async fn oracle(&self) -> Oracle {
        Oracle::open(self.database.connect().await).await.unwrap()
    }

    /// The whole list, with at least 8 rows unless the store is empty.
    pub(crate) async fn whole(&self, oracle: &Oracle, operation: &OperationInfo) -> View {
        let markets: Vec<String> = random_rows::IDS.map(str::to_owned).into();
        let mut views = Vec::new();
        for target in bases(operation, &markets) {
            views.push(View::read(oracle, target).await);
        }
        let whole = views.into_iter().max_by_key(|view| view.listing.rows.len()).unwrap();
        let rows = whole.listing.rows.len();
        assert!(rows >= 8 || self.seed == 0, "{} has {rows} rows", whole.target);
        whole
    }

    /// The whole list, and lists with up to twice `most` of its filters for each parameter.
    pub(crate) async fn views(&self, oracle: &Oracle, operation: &OperationInfo, most: usize) -> Vec<View> {
        let mut random = SmallRng::seed_from_u64(self.seed);
        let whole = self.whole(oracle, operation).await;
        let targets = filtered(operation, &whole.target, &whole.listing, (most, &mut random));
        let mut views = vec![whole];
        for target in targets {
            views.push(View::read(oracle, target).await);
        }
        views
    }
}

impl View {
    pub(crate) async fn read(oracle: &Oracle, target: String) -> Self {
        let listing = oracle.listing(&Question::read(&target).unwrap()).await.unwrap();
        Self { target, listing }
    }

    pub(crate) async fn get(&self, mesh: &MeshClient, page: &Pagination) -> Value {
        let path = format!("{}{}", self.target, query(page));
        let answer = mesh.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Asserts that a page is the one that the contract requires.
    pub(crate) async fn check(&self, mesh: &MeshClient, page: &Pagination) {
        let what = format!("{}{}", self.target, query(page));
        assert_same(&what, &self.get(mesh, page).await, &self.listing.answer(page));
    }
}

/// Requests for pages of this size: the first and the last one in both display orders.
pub(crate) fn pages(size: i32) -> [Pagination; 4] {
    [(Some(size), None, true), (Some(size), None, false), (None, Some(size), true), (None, Some(size), false)]
        .map(|(first, last, newest_first)| Pagination {
            first,
            last,
            newest_first: Some(newest_first),
            ..Pagination::default()
        })
}

/// The same page at a position.
pub(crate) fn at(page: &Pagination, cursor: &str) -> Pagination {
    let cursor = Some(cursor.to_owned());
    match page.first {
        Some(_) => Pagination { after: cursor, ..page.clone() },
        None => Pagination { before: cursor, ..page.clone() },
    }
}
