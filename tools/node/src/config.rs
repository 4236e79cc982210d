//! Configuration of the development node, from environment variables; the table is in docs/developers.md.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use mesh_chassis::Env;
use mesh_devnode::{Checks, Limits, Settings};
use mesh_transaction::{ALGORITHM, Network};

use crate::error::NodeError;

/// The variable with the address of the RPC.
pub(super) const LISTEN: &str = "MESH_DEVNODE_LISTEN";
/// The variable that names the file of the blocks.
pub(super) const FILE: &str = "MESH_DEVNODE_FILE";

const BLOCK_PERIOD_MS: u64 = 1000;

/// See the table of docs/developers.md.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) block_period: Duration,
    pub(super) listen: SocketAddr,
    pub(super) settings: Settings,
    pub(super) catching_up: bool,
}

impl Config {
    /// Reads the environment and these variables, which precede it.
    pub(super) fn read(variables: Vec<(String, String)>) -> Result<Self, NodeError> {
        let own = std::env::vars_os();
        let own = own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from(Env::of(own.chain(variables)))
    }

    /// Parses variables and reports all mistakes together.
    fn from(mut env: Env) -> Result<Self, NodeError> {
        let usual = Limits::default();
        let usual_wait_ms = u64::try_from(usual.commit_wait.as_millis()).unwrap_or(u64::MAX);
        let limits = Limits {
            mempool_txs: env.or("MESH_DEVNODE_MEMPOOL_TXS", usual.mempool_txs),
            mempool_bytes: env.or("MESH_DEVNODE_MEMPOOL_BYTES", usual.mempool_bytes),
            cache: env.or("MESH_DEVNODE_CACHE", usual.cache),
            keep_refused: env.flag("MESH_DEVNODE_KEEP_REFUSED", false),
            commit_wait: env.milliseconds("MESH_DEVNODE_COMMIT_WAIT_MS", usual_wait_ms),
            ..usual
        };
        let checks = match env.optional("MESH_DEVNODE_CHECKS").as_deref() {
            None | Some("all") => Checks::All,
            Some("none") => Checks::None,
            Some(_) => {
                env.mistake("MESH_DEVNODE_CHECKS must be all or none");
                Checks::All
            }
        };
        // The id of the chain is in the file.
        let network = Network {
            chain_id: String::new(),
            algorithm: env.optional("MESH_RELAY_SIGNATURE_ALGO").unwrap_or_else(|| ALGORITHM.to_owned()),
            pow_prefix: env.optional("MESH_POW_PREFIX").unwrap_or_default(),
        };
        let settings = Settings {
            network,
            file: env.required(FILE).into(),
            checks,
            limits,
            check_delay: Duration::from_millis(env.or("MESH_DEVNODE_CHECK_DELAY_MS", 0)),
            broadcasts: env.optional("MESH_DEVNODE_BROADCASTS").map(PathBuf::from),
        };
        let config = Self {
            block_period: env.milliseconds("MESH_DEVNODE_BLOCK_MS", BLOCK_PERIOD_MS),
            listen: env.or(LISTEN, SocketAddr::from(([127, 0, 0, 1], 0))),
            settings,
            catching_up: env.flag("MESH_DEVNODE_CATCHING_UP", false),
        };
        match env.mistakes() {
            [] => Ok(config),
            mistakes => Err(NodeError::Configuration(format!(
                "{}; let `mesh up` start the development node",
                mistakes.join("; ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_usual_and_what_is_wrong_is_named() {
        let read = |variables: &[(&str, &str)]| {
            Config::from(Env::of(variables.iter().map(|(name, value)| ((*name).into(), (*value).into()))))
        };
        let config = read(&[(FILE, "blocks"), ("MESH_DEVNODE_CHECKS", "none"), ("MESH_DEVNODE_CACHE", "7")]);
        let Config { settings, block_period, listen, .. } = config.unwrap();
        assert_eq!(settings.limits, Limits { cache: 7, ..Limits::default() });
        assert_eq!((settings.checks, block_period), (Checks::None, Duration::from_secs(1)));
        assert!(listen.ip().is_loopback());
        let message = read(&[("MESH_DEVNODE_CHECKS", "some")]).unwrap_err().to_string();
        assert!(message.contains(FILE) && message.contains("MESH_DEVNODE_CHECKS"), "{message}");
    }
}
