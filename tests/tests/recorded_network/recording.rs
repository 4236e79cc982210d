//! The mesh of all these tests: the recording loaded once into a database, and the services over it.

use std::{path::PathBuf, sync::LazyLock};

use mesh_loader::load::{LoadReport, load_folder};
use mesh_oracles::Oracle;
use mesh_testbed::{Database, Mesh};
use mesh_tests::Rpc;
use tokio::{runtime::Runtime, sync::OnceCell};

/// The recording and the mesh over it.
pub(crate) struct Recording {
    pub(crate) folder: PathBuf,
    pub(crate) mesh: Mesh,
    pub(crate) rpc: Rpc,
    pub(crate) report: LoadReport,
    /// Height and time of the newest block, as headers have them.
    pub(crate) head: (String, String),
    pub(crate) database: Database,
    pub(crate) oracle: Oracle,
}

impl Recording {
    /// The names of all its CSV files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".csv")).collect();
        names.sort();
        names
    }

    async fn start(folder: PathBuf) -> Self {
        let database = Database::fresh().await;
        let report = load_folder(database.url(), &folder, |_, _, _| ()).await.unwrap();
        let mesh = Mesh::start(&database).await;
        let rpc = Rpc::connect(&mesh).await;
        let oracle = Oracle::open(database.connect().await).await.unwrap();
        let newest = "SELECT height::text, pg_temp.ns(block_time)::text FROM blocks ORDER BY blocks.height DESC LIMIT 1";
        let newest = oracle.client().query_one(newest, &[]).await.unwrap();
        let head = (newest.get(0), newest.get(1));
        Self { folder, mesh, rpc, report, head, database, oracle }
    }
}

/// Runs a test with the recording, beside others that read it; the first call loads it and starts the mesh. Skipped
/// without the recording.
pub(crate) fn with_recording(test: impl AsyncFnOnce(&Recording)) {
    // Connections end with the runtime that began them, and each test has one.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    static RECORDING: OnceCell<Recording> = OnceCell::const_new();
    let Some(folder) = mesh_tests::recording() else { return };
    RUNTIME.block_on(async { test(RECORDING.get_or_init(|| Recording::start(folder)).await).await });
}
