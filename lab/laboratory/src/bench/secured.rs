//! Section "secured": what a key and TLS cost the edge, for reads from its cache.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use mesh::failure::{Failure, cannot};
use mesh_testbed::certify;

use super::{
    comparison::{self, Side},
    load::{Load, Pace, Requests},
    section::Figures,
    world::World,
};
use crate::{private::variables, rig::public::key_entry};

const KEYS: usize = 10_000;
const CONNECTIONS: u64 = 32;
/// Rows that are read repeatedly.
const ROWS: usize = 100;
const EDGES: [&str; 4] = ["edge", "edge-limit", "edge-keys", "edge-tls"];
/// A rate that no client reaches.
const RATE: u32 = 1_000_000;

pub(super) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let (plain, rows) = (world.edges().await?.cached, world.withdrawals().await?);
    let keys: Arc<[String]> = (0..KEYS).map(|_| mesh_keys::generate()).collect();
    let folder = tempfile::tempdir().map_err(|error| cannot("use a temporary folder", &error))?;
    let file = folder.path().join("keys.jsonl");
    fs::write(&file, key_file(&keys)).map_err(|error| cannot("write the keys", &error))?;
    let tls = certify(folder.path());
    let start = async |name, env: &[(&str, &str)]| {
        world.mesh.start_named(&world.servers, &[("edge", name)], variables(env)).await
    };
    let path = |file: &Path| file.to_string_lossy().into_owned();
    let with_limit = start(EDGES[1], &[("MESH_EDGE_RATE_PER_S", &RATE.to_string())]).await?;
    let with_keys = start(EDGES[2], &[("MESH_EDGE_KEYS_FILE", &path(&file))]).await?;
    let files = [path(&tls.certificate), path(&tls.key)];
    let env = [("MESH_EDGE_TLS_CERT", &*files[0]), ("MESH_EDGE_TLS_KEY", &*files[1])];
    let with_tls = start(EDGES[3], &env).await?;

    let side = |name, process, address, ca: Option<&PathBuf>, reconnects: bool| {
        let pace = Pace::closed(CONNECTIONS, world.length());
        let requests = Requests::Keyed(rows[..ROWS].into(), Arc::clone(&keys));
        let load = Load { ca: ca.cloned(), reconnects, ..Load::new(address, requests, pace) };
        Side::load(name, load, world.mesh.watch(&[process]))
    };
    let sides = comparison::run_rounds([
        side("plain", EDGES[0], plain, None, false),
        side("a limit of the address", EDGES[1], with_limit, None, false),
        side("a limit of one of 10,000 keys", EDGES[2], with_keys, None, false),
        side("TLS", EDGES[3], with_tls, Some(&tls.ca), false),
        side("plain, a connection each", EDGES[0], plain, None, true),
        side("TLS, a connection each", EDGES[3], with_tls, Some(&tls.ca), true),
    ])
    .await?;
    let [plain, limit, key, tls, plain_each, tls_each] = &sides;
    let found =
        vec![key.cost() - limit.cost(), tls.cost() / plain.cost(), tls_each.cost() - plain_each.cost()];
    Ok(comparison::figures(
        &format!("{ROWS} withdrawals from the cache, {CONNECTIONS} connections"),
        &sides,
        found,
    ))
}

fn key_file(keys: &[String]) -> String {
    let entry = |(number, key): (usize, &String)| key_entry(format!("client {number}"), key, RATE);
    mesh_keys::to_text(&keys.iter().enumerate().map(entry).collect::<Vec<_>>())
}
