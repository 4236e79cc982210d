//! Meshes shared by the tests that only read.

use mesh_testbed::{Database, Mesh};
use mesh_tests::client::MeshClient;
use rand::{SeedableRng, rngs::SmallRng};
use tokio::sync::OnceCell;

use crate::paging::{
    data,
    list::{LISTS, List},
    page::View,
    seeds,
};

pub(crate) const SEVEN: [i64; 7] = [1, 2, 3, 4, 5, 6, 7];

/// The lists of numbered rows with their expected rows.
pub(crate) fn views(numbers: &[i64]) -> Vec<View> {
    LISTS.map(|list| View::numbered(list, numbers)).to_vec()
}

/// A database with these numbered rows in each list.
pub(crate) async fn stored(numbers: &[i64]) -> Database {
    let database = Database::fresh().await;
    let client = database.connect().await;
    for list in LISTS {
        client.batch_execute(&list.insert(numbers)).await.unwrap();
    }
    database
}

/// A client of the mesh with seven rows in each list.
pub(crate) async fn seven() -> (MeshClient, Vec<View>) {
    static SHARED: OnceCell<(Database, Mesh)> = OnceCell::const_new();
    let start = async || {
        let database = stored(&SEVEN).await;
        let mesh = Mesh::start(&database).await;
        (database, mesh)
    };
    let (_, mesh) = SHARED.get_or_init(start).await;
    (MeshClient::new(mesh), views(&SEVEN))
}

/// A mesh over random lists of one seed.
pub(crate) struct RandomLists {
    views: Vec<View>,
    mesh: Mesh,
    _database: Database,
}

impl RandomLists {
    async fn start(seed: u64) -> Self {
        let (database, mut views) = (Database::fresh().await, Vec::new());
        let client = database.connect().await;
        for list in LISTS {
            let (statements, of_list) = data::views(list, &mut SmallRng::seed_from_u64(seed));
            client.batch_execute(&statements).await.unwrap();
            views.extend(of_list);
        }
        Self { views, mesh: Mesh::start(&database).await, _database: database }
    }

    /// The random lists of all seeds, shared.
    pub(crate) async fn all() -> &'static [Self] {
        static SHARED: OnceCell<Vec<RandomLists>> = OnceCell::const_new();
        let start = async || {
            let mut all = Vec::new();
            for seed in seeds() {
                all.push(Self::start(seed).await);
            }
            all
        };
        SHARED.get_or_init(start).await
    }

    pub(crate) fn mesh_client(&self) -> MeshClient {
        MeshClient::new(&self.mesh)
    }

    pub(crate) fn views(&self, list: List) -> impl Iterator<Item = &View> {
        self.views.iter().filter(move |view| view.list == list)
    }
}
