//! Section "submit": submissions through edge, bus and relay, compared with posting to the same node's own RPC.
//!
//! The node is the development node with all its checks, on a network without proof of work, so that creating
//! a transaction costs only its signature. Each is sent once; both sides wait for the node's check
//! (TYPE_SYNC).

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh::{
    failure::Failure,
    processes::{DEVNODE, NATS},
};
use proto_msgs::v2::{SubmissionType, SubmitTransactionRequest};
use serde_json::json;

use super::{
    comparison::{self, Side},
    load::{Load, Pace, Requests},
    section::Figures,
    world::World,
};
use crate::{
    private::{Layout, UNCACHED_EDGE},
    private_chain::TransactionFactory,
};

const CONNECTIONS: u64 = 32;
/// Variables of the node: a short block time and a large mempool, so that the mempool never fills.
const NODE: [(&str, &str); 3] = [
    ("MESH_DEVNODE_BLOCK_MS", "200"),
    ("MESH_DEVNODE_MEMPOOL_TXS", "1000000"),
    ("MESH_DEVNODE_MEMPOOL_BYTES", "1000000000"),
];
/// Text in every successful answer, of the gateway and of the node.
const ACCEPTED: &str = "\"code\":0";

pub(super) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let World { mesh, servers, .. } = world;
    let node = mesh.start_node(servers, false, &NODE).await?;
    let node_url = Some(format!("http://{}", node.address()));
    // Services that take no part do not run.
    let replicas = [("query", 0), ("export", 0), (UNCACHED_EDGE, 0)];
    let layout = Layout { replicas: &replicas, node_url, ..Layout::default() };
    let edge = mesh.start_services(servers, &layout).await?.cached;
    let (factory, length) = (Arc::new(TransactionFactory::new(0)), world.length());
    let side = |name: &str, address: SocketAddr, make: fn(&TransactionFactory) -> Vec<u8>, clients| {
        let factory = Arc::clone(&factory);
        let requests = Requests::Prepared { make: Arc::new(move || make(&factory)), expects: ACCEPTED };
        let chain = ["edge", NATS, "tx-relay", DEVNODE];
        let processes = if address == edge { mesh.watch(&chain) } else { mesh.watch(&[DEVNODE]) };
        Side::load(name, Load::new(address, requests, Pace::closed(clients, length)), processes)
    };
    let sides = comparison::run_rounds([
        side("mesh", edge, submission, CONNECTIONS),
        side("node's RPC", node.address(), call, CONNECTIONS),
        side("mesh, 1 connection", edge, submission, 1),
        side("node's RPC, 1 connection", node.address(), call, 1),
    ])
    .await?;
    let title = format!("signed transactions by TYPE_SYNC, {CONNECTIONS} connections and one");
    let found = vec![sides[0].rate() / sides[1].rate(), sides[2].p50_ms() - sides[3].p50_ms()];
    Ok(comparison::figures(&title, &sides, found))
}

/// The HTTP request of a client of the gateway.
fn submission(factory: &TransactionFactory) -> Vec<u8> {
    let kind = SubmissionType::TypeSync.into();
    let request = SubmitTransactionRequest { tx: Some(factory.transaction()), r#type: kind };
    posted("/transaction", &serde_json::to_string(&request).unwrap_or_default())
}

/// The HTTP request of a client of the node.
fn call(factory: &TransactionFactory) -> Vec<u8> {
    let tx = STANDARD.encode(factory.encoded());
    let call = json!({"jsonrpc": "2.0", "id": 0, "method": "broadcast_tx_sync", "params": {"tx": tx}});
    posted("/", &call.to_string())
}

fn posted(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    format!("{head}{body}").into_bytes()
}
