//! Suite "relay": submissions through edge, bus and relay, compared with posting to the same node's own RPC.
//!
//! The node is the development node with all its checks, on a network without proof of work, so that creating
//! a transaction costs only its signature. Each is sent once; both sides wait for the node's check
//! (TYPE_SYNC).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh::{
    failure::Failure,
    processes::{DEVNODE, NATS},
    terminal::print_line,
};
use mesh_devnode::ReservedPort;
use proto_msgs::v2::{SubmissionType, SubmitTransactionRequest};
use serde_json::json;

use super::{
    comparison::{self, Side},
    load::{Load, Requests},
    section::Section,
    sections::SectionName,
};
use crate::{
    bench::args::BenchArgs,
    private::{Layout, PrivateMesh, UNCACHED_EDGE},
    private_node::TransactionFactory,
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

/// The running mesh and its node.
pub(super) struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    edge: SocketAddr,
    node: ReservedPort,
    factory: Arc<TransactionFactory>,
    /// Length of a round.
    length: Duration,
}

impl<'a> Fixture<'a> {
    pub(super) async fn start(mesh: &'a PrivateMesh, args: &BenchArgs) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        let node = mesh.start_node(&servers, false, &NODE).await?;
        let node_url = Some(format!("http://{}", node.address()));
        // Services that take no part do not run.
        let replicas = [("query", 0), ("export", 0), (UNCACHED_EDGE, 0)];
        let layout = Layout { replicas: &replicas, node_url, ..Layout::default() };
        let edge = mesh.start_services(&servers, &layout).await?.cached;
        let (factory, length) =
            (Arc::new(TransactionFactory::new(0)), Duration::from_secs(args.seconds.into()));
        Ok(Self { mesh, edge, node, factory, length })
    }

    async fn compare(&self, connections: u64, length: Duration) -> Result<[Side<'static>; 2], Failure> {
        let side = |name, address, make: fn(&TransactionFactory) -> Vec<u8>, processes: &[&str]| {
            let factory = Arc::clone(&self.factory);
            let requests = Requests::Prepared { make: Arc::new(move || make(&factory)), expects: ACCEPTED };
            let load = Load { address, requests, connections, length, period: None };
            Side::load(name, load, self.mesh.watch(processes))
        };
        comparison::run_rounds([
            side("mesh", self.edge, submission, &["edge", NATS, "tx-relay", DEVNODE]),
            side("node's RPC", self.node.address(), call, &[DEVNODE]),
        ])
        .await
    }

    /// Section "submit".
    pub(super) async fn submit(&self) -> Result<Section, Failure> {
        print_line("submitting transactions, through the mesh and to the node itself");
        let sides = self.compare(CONNECTIONS, self.length).await?;
        let title = format!("signed transactions by TYPE_SYNC, {CONNECTIONS} connections");
        let found = sides[0].rate_to(&sides[1], "submissions");
        Ok(comparison::section(SectionName::Submit, &title, &sides, &[found]))
    }

    /// Section "submit-hop".
    pub(super) async fn hop(&self) -> Result<Section, Failure> {
        print_line("submitting transactions in sequence");
        let sides = self.compare(1, self.length / 2).await?;
        let found = sides[0].delay_to(&sides[1], "submission");
        Ok(comparison::section(SectionName::SubmitHop, "the same over 1 connection", &sides, &[found]))
    }
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn both_sides_are_posted_whole_transactions() {
        let body = |request: Vec<u8>| {
            let text = String::from_utf8(request).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
            serde_json::from_str::<Value>(body).unwrap()
        };
        let factory = || TransactionFactory::new(1);
        let submission = body(submission(&factory()));
        assert_eq!(
            (&submission["type"], &submission["tx"]["version"]),
            (&json!("TYPE_SYNC"), &json!("TX_VERSION_V3"))
        );
        let called = STANDARD.decode(body(call(&factory()))["params"]["tx"].as_str().unwrap()).unwrap();
        assert_eq!(called, factory().encoded());
    }
}
