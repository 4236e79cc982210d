//! The deployments: the overlays of `k8s` as kustomize renders them, and `docker-compose.yml`. They are
//! checked against the schemas of Kubernetes and of every custom resource, a security policy, the intended
//! connections, and the variables that the services read.

mod addresses;
mod bus;
mod compose;
mod image;
mod network;
mod policy;
mod rendered;
mod schema;
mod started;
mod table;
mod variables;

use policy::faults_by;
use rendered::{OVERLAYS, Overlay, overlays, parts, text, texts};
use variables::{documented, read_by};

use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::Value;

const SERVICES: [&str; 6] = ["edge", "query", "tx-relay", "node-info", "export", "ingest"];

/// The differences of a value from a schema.
fn differences(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
