//! The mesh of all these tests: the recording loaded once into a database, and the services over it.

use std::{
    path::PathBuf,
    sync::LazyLock,
    time::{Duration, Instant},
};

use mesh_store::load::{LoadReport, load_folder};
use mesh_testbed::{Database, Mesh};
use mesh_tests::rpc::Rpc;
pub(crate) use mesh_tests::say;
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::recorded_network::files::Table;

/// The recording and the mesh over it.
pub(crate) struct Recording {
    pub(crate) folder: PathBuf,
    pub(crate) mesh: Mesh,
    pub(crate) rpc: Rpc,
    pub(crate) report: LoadReport,
    pub(crate) loaded_in: Duration,
    /// The newest block.
    pub(crate) head: Block,
    pub(crate) database: Database,
}

/// The block that an answer's headers name.
pub(crate) struct Block {
    pub(crate) height: u64,
    pub(crate) time_ns: i64,
    pub(crate) hash: String,
}

impl Recording {
    /// One of the recording's files.
    pub(crate) fn table(&self, name: &str) -> Table {
        Table::read(&self.folder, name)
    }

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
        let began = Instant::now();
        let report = load_folder(database.url(), &folder, |_, _, _| ()).await.unwrap();
        let loaded_in = began.elapsed();
        let mesh = Mesh::start(&database).await;
        let rpc = Rpc::connect(&mesh).await;
        let blocks = Table::read(&folder, "blocks");
        let newest = blocks.rows().max_by_key(|block| block.number::<u64>("height")).unwrap();
        let head = Block {
            height: newest.number("height"),
            time_ns: newest.ns("block_time"),
            hash: newest.text("hash").to_owned(),
        };
        Self { folder, mesh, rpc, report, loaded_in, head, database }
    }
}

/// Runs a test with the recording; the first call loads it and starts the mesh. Skipped without the
/// recording.
pub(crate) fn with_recording(test: impl AsyncFnOnce(&Recording)) {
    // The client's connections belong to the runtime that opened them, so all tests share one runtime.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    static RECORDING: OnceCell<Recording> = OnceCell::const_new();
    let Some(folder) = mesh_tests::recording() else { return };
    RUNTIME.block_on(async { test(RECORDING.get_or_init(|| Recording::start(folder)).await).await });
}
