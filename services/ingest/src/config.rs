//! Configuration of the `ingest` workload; the table is in its README.

use std::collections::BTreeSet;

use mesh_chassis::{Database, Env, LagLimit, Sampler};
use mesh_node_rpc::NodeUrl;
use mesh_store::check_address;

use crate::{decode::EVENT_PREFIX, node::MAX_REPLY_BYTES, order::Settings};

/// Greatest height that the store can have.
const MAX_HEIGHT: u64 = i64::MAX.unsigned_abs();

/// The configuration.
pub(crate) struct Config {
    pub(crate) database_url: String,
    pub(crate) nodes: Vec<NodeUrl>,
    pub(crate) lag: LagLimit,
    pub(crate) decoder: DecoderKind,
    pub(crate) order: Settings,
    pub(crate) skip: BTreeSet<u64>,
    pub(crate) sampling: Sampler,
}

/// Which decoder makes rows of blocks.
pub(crate) enum DecoderKind {
    /// The built-in one, for events whose types begin with this text.
    Events(String),
    /// A service on the bus.
    Nats,
}

impl mesh_chassis::Config for Config {
    fn read(env: &mut Env) -> Self {
        let prefix = env.or("MESH_INGEST_EVENT_PREFIX", EVENT_PREFIX.to_owned());
        let decoder = match env.or("MESH_INGEST_DECODER", "events".to_owned()).as_str() {
            "events" => DecoderKind::Events(prefix),
            "nats" => DecoderKind::Nats,
            _ => {
                env.mistake("MESH_INGEST_DECODER must be events or nats");
                DecoderKind::Nats
            }
        };
        let from = height(env, "MESH_INGEST_FROM");
        let after_hash = env.optional("MESH_INGEST_AFTER_HASH").map(|hash| hash.to_ascii_lowercase());
        if after_hash.as_ref().is_some_and(|hash| !is_hash(hash)) {
            env.mistake("MESH_INGEST_AFTER_HASH must have 64 hexadecimal digits");
        }
        let skip = env.optional("MESH_INGEST_SKIP").unwrap_or_default();
        let skip = skip.split(',').map(str::trim).filter(|height| !height.is_empty()).map(str::parse);
        let skip = skip.collect::<Result<_, _>>().unwrap_or_else(|_| {
            env.mistake("MESH_INGEST_SKIP must be heights, separated by commas");
            BTreeSet::new()
        });
        Self {
            database_url: Database::read_primary(env, check_address),
            nodes: NodeUrl::read_list(env),
            lag: LagLimit::read(env),
            decoder,
            order: Settings {
                fetch_ahead: env.positive("MESH_INGEST_FETCH_AHEAD", 16),
                held_bytes: MAX_REPLY_BYTES,
                from,
                after_hash,
            },
            skip,
            sampling: Sampler::of_own_traces(env),
        }
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A height, at least 1.
fn height(env: &mut Env, name: &str) -> Option<u64> {
    let height = env.optional(name)?.parse().ok().filter(|height| (1..=MAX_HEIGHT).contains(height));
    if height.is_none() {
        env.mistake(format!("{name} must be a height, at least 1"));
    }
    height
}
