//! The limits of one client in favour of the others: requests per second, downloads, concurrent requests,
//! connections.

mod connections;
mod exports;
mod fairness;
mod rate;
mod unread;

use mesh_testbed::Answer;
use mesh_tests::MeshClient;

/// A read that the edge answers from its cache after the first time.
const HOT: &str = "/api/v2/delegations";

/// Gets a path as a trusted proxy on behalf of a client address.
async fn get_for(mesh_client: &MeshClient, client: &str, path: &str) -> Answer {
    mesh_client.get_with(path, "x-forwarded-for", client).await
}
