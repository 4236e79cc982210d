//! The edge's access log: an operator finds a request by its id, and no line contains a secret. The log lines
//! of downloads are tested in `exports`.

mod doors;
mod secrets;
mod slow;

use mesh_testbed::{Database, Mesh};
use mesh_tests::fixture;
use tokio::sync::OnceCell;

/// A mesh over the fixture; `logged` is the value of `MESH_EDGE_ACCESS_LOG`.
async fn start(logged: &str) -> (Database, Mesh) {
    let (database, mesh, _) = fixture::start(|setup| setup.env("MESH_EDGE_ACCESS_LOG", logged)).await;
    (database, mesh)
}

async fn logging_all() -> &'static (Database, Mesh) {
    static SHARED: OnceCell<(Database, Mesh)> = OnceCell::const_new();
    SHARED.get_or_init(|| start("all")).await
}

/// The shared mesh that logs requests that are not answered with success.
async fn logging_errors() -> &'static (Database, Mesh) {
    static SHARED: OnceCell<(Database, Mesh)> = OnceCell::const_new();
    SHARED.get_or_init(|| start("errors")).await
}
