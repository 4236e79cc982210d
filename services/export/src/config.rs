//! Configuration of the `export` workload; the table is in its README.

use std::{path::PathBuf, time::Duration};

use mesh_chassis::Env;
use mesh_store::StoreConfig;

use crate::seal::Rules;

/// See the README's table.
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) history_root: String,
    pub(crate) refresh: Duration,
    pub(crate) rules: Rules,
    pub(crate) scratch: PathBuf,
    pub(crate) in_flight: usize,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let interval = env.positive("MESH_HISTORY_INTERVAL_BLOCKS", 1000);
        let interval = i64::try_from(interval).ok().filter(|blocks| *blocks <= Rules::INTERVAL_AT_MOST);
        if interval.is_none() {
            env.mistake("MESH_HISTORY_INTERVAL_BLOCKS is too large");
        }
        Self {
            store: StoreConfig {
                url: env.required("MESH_DATABASE_URL"),
                replica_url: env.optional("MESH_DATABASE_REPLICA_URL"),
                query_timeout: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000),
                point_connections: 1,
                list_connections: env.positive("MESH_EXPORT_LIST_CONNECTIONS", 4),
                name: "mesh export".to_owned(),
            },
            history_root: env.or("MESH_HISTORY_URL", ".mesh".to_owned()),
            refresh: env.milliseconds("MESH_HISTORY_REFRESH_MS", 1000),
            rules: Rules {
                interval_blocks: interval.unwrap_or(1000),
                retention_blocks: env.or("MESH_HISTORY_RETENTION_BLOCKS", 0),
            },
            scratch: env.optional("MESH_EXPORT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from),
            in_flight: env.positive("MESH_EXPORT_IN_FLIGHT", 64),
        }
    }
}
