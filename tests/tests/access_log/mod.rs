//! The edge's access log: an operator finds a request by its id, and no line contains a secret. The log lines
//! of downloads are tested in `exports`.

mod doors;
mod secrets;
mod slow;

use mesh_testbed::{Database, Mesh};
use mesh_tests::fixture;

/// A mesh over the fixture; `wanted` is the value of `MESH_EDGE_ACCESS_LOG`.
async fn mesh(logged_requests: &str) -> (Database, Mesh) {
    let (database, mesh, _) =
        fixture::start(|setup| setup.env("MESH_EDGE_ACCESS_LOG", logged_requests)).await;
    (database, mesh)
}
