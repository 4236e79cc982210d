//! Configuration of the `query` workload; the table is in its README.

use mesh_chassis::{Database, Env, LagLimit, PageLimits};
use mesh_store::{PageSizes, StoreConfig, check_address};

/// The configuration.
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) lag: LagLimit,
    pub(crate) sizes: PageSizes,
    pub(crate) max_accounts: usize,
    pub(crate) in_flight: usize,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let (database, rows) = (Database::read(env, check_address), PageLimits::read(env));
        Self {
            store: StoreConfig {
                url: database.url,
                replica_url: database.replica_url,
                query_timeout: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000),
                point_connections: env.positive("MESH_QUERY_POINT_CONNECTIONS", 4),
                list_connections: env.positive("MESH_QUERY_LIST_CONNECTIONS", 8),
                name: "mesh query".to_owned(),
            },
            lag: LagLimit::read(env),
            sizes: PageSizes { default: rows.page_default, greatest: rows.page_max },
            max_accounts: rows.accounts_max,
            in_flight: env.positive("MESH_QUERY_IN_FLIGHT", 256),
        }
    }
}
