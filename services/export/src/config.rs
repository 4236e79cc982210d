//! Configuration of the `export` workload; the table is in its README.

use std::{path::PathBuf, time::Duration};

use mesh_chassis::{Database, Env};
use mesh_history::SegmentStore;
use mesh_store::{StoreConfig, check_address};

use crate::{
    metrics::Metrics,
    seal::{Rules, Sealing},
};

/// The configuration.
pub(crate) struct Config {
    pub(crate) store: StoreConfig,
    pub(crate) history_root: String,
    pub(crate) refresh: Duration,
    pub(crate) rules: Rules,
    pub(crate) scratch: PathBuf,
    pub(crate) in_flight: usize,
}

fn rules(env: &mut Env) -> Rules {
    let interval = env.positive("MESH_HISTORY_INTERVAL_BLOCKS", 1000);
    let interval = i64::try_from(interval).ok().filter(|blocks| *blocks <= Rules::INTERVAL_AT_MOST);
    if interval.is_none() {
        env.mistake("MESH_HISTORY_INTERVAL_BLOCKS is too large");
    }
    Rules {
        interval_blocks: interval.unwrap_or(1000),
        retention_blocks: env.or("MESH_HISTORY_RETENTION_BLOCKS", 0),
    }
}

fn history_root(env: &mut Env) -> String {
    env.or("MESH_HISTORY_URL", ".mesh".to_owned())
}

fn scratch(env: &mut Env) -> PathBuf {
    let folder = env.optional("MESH_EXPORT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let readable = std::fs::read_dir(&folder).map(drop);
    env.check("MESH_EXPORT_SCRATCH", readable.map_err(|error| format!("{}: {error}", folder.display())));
    folder
}

impl Sealing {
    /// Sealing as a replica with these environment variables does it, for commands that seal without a
    /// replica.
    ///
    /// # Errors
    /// All invalid variables, or that the segment store cannot be opened.
    pub fn configured(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let variables: Vec<_> = variables.into_iter().collect();
        let mut env = Env::of(variables.clone());
        let (database_url, root) = (Database::read(&mut env, check_address).url, history_root(&mut env));
        let (rules, scratch) = (rules(&mut env), scratch(&mut env));
        if !env.mistakes().is_empty() {
            return Err(env.mistakes().join("; "));
        }
        let segments = SegmentStore::open_with(&root, &variables);
        let segments = segments.map_err(|error| error.to_string())?;
        Ok(Self { database_url, segments, rules, scratch, metrics: Metrics::default() })
    }
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let database = Database::read(env, check_address);
        Self {
            store: StoreConfig {
                url: database.url,
                replica_url: database.replica_url,
                query_timeout: env.milliseconds("MESH_QUERY_TIMEOUT_MS", 10_000),
                point_connections: 1,
                list_connections: env.positive("MESH_EXPORT_LIST_CONNECTIONS", 4),
                name: "mesh export".to_owned(),
            },
            history_root: history_root(env),
            refresh: env.milliseconds("MESH_HISTORY_REFRESH_MS", 5000),
            rules: rules(env),
            scratch: scratch(env),
            in_flight: env.positive("MESH_EXPORT_IN_FLIGHT", 64),
        }
    }
}
