//! The edge's access log: an operator finds a request by its id, and nothing in it that was a secret. What
//! becomes of downloads is told beside the tests of those.

mod doors;
mod secrets;
mod slow;

use mesh_testbed::{Database, Mesh};
use mesh_tests::fixture;

/// A mesh over the fixture whose log tells of these requests.
async fn mesh(wanted: &str) -> (Database, Mesh) {
    let database = fixture::database().await;
    let mesh = Mesh::configure(&database).env("MESH_EDGE_ACCESS_LOG", wanted).start().await;
    (database, mesh)
}
