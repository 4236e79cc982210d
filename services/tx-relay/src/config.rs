//! Configuration of the `tx-relay` workload; the table is in its README.

use std::time::Duration;

use mesh_chassis::Env;
use mesh_node_rpc::NodeUrl;

/// The configuration.
pub(crate) struct Config {
    pub(crate) nodes: Vec<NodeUrl>,
    pub(crate) rules: Rules,
    pub(crate) signatures: Option<Signatures>,
    pub(crate) in_flight: usize,
    pub(crate) commits: usize,
}

/// How submissions are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Whether TYPE_COMMIT is offered.
    pub(crate) allow_commit: bool,
    /// Whether the node keeps refused transactions in its cache, so that "already in cache" does not imply
    /// that it accepted them (5.3).
    pub(crate) node_keeps_refused: bool,
    /// Time to live of cached results.
    pub(crate) result_ttl: Duration,
    /// Most cached results.
    pub(crate) max_results: usize,
}

/// The check of signatures by the relay itself.
#[derive(Debug, Clone)]
pub(crate) struct Signatures {
    /// The only algorithm that is accepted.
    pub(crate) algorithm: String,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let algorithm = env.or("MESH_RELAY_SIGNATURE_ALGO", "ed25519".to_owned());
        let verifies = env.flag("MESH_RELAY_VERIFY_SIGNATURE", false);
        Self {
            nodes: NodeUrl::read_list(env),
            rules: Rules {
                allow_commit: env.flag("MESH_RELAY_ALLOW_COMMIT", true),
                node_keeps_refused: env.flag("MESH_RELAY_NODE_KEEPS_REFUSED", false),
                result_ttl: env.seconds("MESH_RELAY_REMEMBER_S", 600),
                max_results: env.positive("MESH_RELAY_REMEMBER_AT_MOST", 100_000),
            },
            signatures: verifies.then_some(Signatures { algorithm }),
            in_flight: env.positive("MESH_RELAY_IN_FLIGHT", 1024),
            commits: env.positive("MESH_RELAY_COMMITS", 64),
        }
    }
}
