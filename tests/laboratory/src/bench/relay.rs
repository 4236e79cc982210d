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
    Section,
    bar::{Bar, Bound},
    comparison::{self, Outcome, Side},
    load::{Load, Requests},
    point::section,
    sections::{RelaySection, SectionName},
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

/// Runs the sections, and prints each as soon as it is finished.
pub(super) async fn measure(
    mesh: &PrivateMesh,
    names: &[RelaySection],
    args: &BenchArgs,
) -> Result<Vec<Section>, Failure> {
    let fixture = Fixture::start(mesh).await?;
    let length = Duration::from_secs(args.seconds.into());
    let mut sections = Vec::new();
    for name in names {
        let measured = match name {
            RelaySection::Submit => fixture.submit(length).await,
            RelaySection::SubmitHop => fixture.hop(length / 2).await,
        };
        let section = measured.unwrap_or_else(|failure| Section::failed(SectionName::Relay(*name), failure));
        println!("{}", section.table);
        sections.push(section);
    }
    Ok(sections)
}

/// The running mesh and its node.
struct Fixture<'a> {
    mesh: &'a PrivateMesh,
    edge: SocketAddr,
    node: ReservedPort,
    factory: Arc<TransactionFactory>,
}

impl<'a> Fixture<'a> {
    async fn start(mesh: &'a PrivateMesh) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        let node = mesh.start_node(&servers, &NODE).await?;
        let node_url = Some(format!("http://{}", node.address()));
        // Services that take no part do not run.
        let replicas = [("query", 0), ("export", 0), (UNCACHED_EDGE, 0)];
        let layout = Layout { replicas: &replicas, node_url, ..Layout::default() };
        let edges = mesh.start_services(&servers, &layout).await?;
        Ok(Self { mesh, edge: edges.cached, node, factory: Arc::new(TransactionFactory::new(0)) })
    }

    async fn compare(&self, connections: u64, length: Duration) -> Result<Vec<Outcome>, Failure> {
        let (posting, asking) = (Arc::clone(&self.factory), Arc::clone(&self.factory));
        let side = |name, address, make: Arc<dyn Fn() -> Vec<u8> + Send + Sync>, processes: &[&str]| Side {
            name,
            load: Load {
                address,
                requests: Requests::Prepared { make, expects: ACCEPTED },
                connections,
                length,
                period: None,
            },
            processes: self.mesh.watch(processes),
        };
        let through = ["edge", NATS, "tx-relay", DEVNODE];
        comparison::run_rounds(vec![
            side("mesh", self.edge, Arc::new(move || submission(&posting)), &through),
            side("node's RPC", self.node.address(), Arc::new(move || call(&asking)), &[DEVNODE]),
        ])
        .await
    }

    /// Section "submit".
    async fn submit(&self, length: Duration) -> Result<Section, Failure> {
        print_line("submitting transactions, through the mesh and to the node itself");
        let outcomes = self.compare(CONNECTIONS, length).await?;
        let [product, direct] = &outcomes[..] else { return Err(nothing()) };
        let bar = Bar {
            what: format!("{} / {}, submissions a second", product.name(), direct.name()),
            found: product.rate() / direct.rate(),
            bound: Bound::AtLeast(0.5),
            aim: 0.8,
        };
        let title = format!("submit: signed transactions by TYPE_SYNC, {CONNECTIONS} connections");
        Ok(section("submit", &title, &outcomes, &bar))
    }

    /// Section "submit-hop".
    async fn hop(&self, length: Duration) -> Result<Section, Failure> {
        print_line("submitting transactions one after the other");
        let outcomes = self.compare(1, length).await?;
        let [product, direct] = &outcomes[..] else { return Err(nothing()) };
        let bar = Bar {
            what: format!("{} - {}, ms of the median submission", product.name(), direct.name()),
            found: product.p50_ms() - direct.p50_ms(),
            bound: Bound::AtMost(0.5),
            aim: 0.3,
        };
        Ok(section("submit-hop", "submit-hop: the same over 1 connection", &outcomes, &bar))
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

fn nothing() -> Failure {
    Failure::failed("there is nothing to compare")
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
