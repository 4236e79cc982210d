//! A leaf node: the edge is connected to one bus server, the services to another.

use mesh_testbed::{Mesh, Network, Service};
use mesh_tests::MeshClient;

use crate::bus::checks::{answers_everything, database, download};

#[tokio::test]
async fn an_edge_at_a_leaf_node_gives_the_same_answers_as_one_at_the_hub() {
    let (database, network) = (database().await, Network::hub_and_leaf().await);
    let prefix = ("MESH_BUS_PREFIX", format!("leaf{:x}", rand::random::<u64>()));
    let (hub, leaf) = (network.at(0), network.at(1));
    let at_hub = Mesh::configure(&database).bus(&hub).env(prefix.0, &prefix.1).start().await;
    let alone = Mesh::configure(&database).without(&["query", "node-info", "export"]);
    let at_leaf = alone.bus(&leaf).env(prefix.0, &prefix.1).start().await;
    answers_everything(&at_hub).await;
    answers_everything(&at_leaf).await;
    assert!(download(&MeshClient::new(&at_leaf)).await == download(&MeshClient::new(&at_hub)).await);

    // In the other direction: the edge is connected to the hub, the query service to the leaf.
    drop(at_leaf);
    let query =
        Service::configure("query").database(&database).bus(&leaf).env(prefix.0, &prefix.1).start().await;
    at_hub.service("query").stop().await;
    MeshClient::new(&at_hub).await_status("/accounts?party=network", 200).await;
    drop(query);
}
