//! Configuration of the `node-info` workload; the table is in its README.

use mesh_chassis::{Database, Env, LagLimit};
use mesh_node_rpc::NodeUrl;
use mesh_store::{StoreConfig, check_address};

/// The configuration.
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    /// Empty without a node.
    pub(crate) nodes: Vec<NodeUrl>,
    pub(crate) lag: LagLimit,
    pub(crate) in_flight: usize,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let database = Database::read(env, check_address);
        Self {
            store: StoreConfig {
                url: database.url,
                replica_url: database.replica_url,
                query_timeout: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000),
                point_connections: env.positive("MESH_NODE_INFO_POINT_CONNECTIONS", 2),
                list_connections: 1,
                name: "mesh node-info".to_owned(),
            },
            nodes: NodeUrl::read_optional(env),
            lag: LagLimit::read(env),
            in_flight: env.positive("MESH_NODE_INFO_IN_FLIGHT", 256),
        }
    }
}
