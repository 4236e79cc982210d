//! Configuration of the `node-info` workload; the table is in its README.

use mesh_chassis::Env;
use mesh_store::StoreConfig;

/// See the README's table.
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) in_flight: usize,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        Self {
            store: StoreConfig {
                url: env.required("MESH_DATABASE_URL"),
                replica_url: env.optional("MESH_DATABASE_REPLICA_URL"),
                query_timeout: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000),
                point_connections: env.positive("MESH_NODE_INFO_POINT_CONNECTIONS", 2),
                list_connections: 1,
                name: "mesh node-info".to_owned(),
            },
            in_flight: env.positive("MESH_NODE_INFO_IN_FLIGHT", 256),
        }
    }
}
