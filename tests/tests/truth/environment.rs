//! The services under test: edges, `query` replicas and one `node-info` over one store. Proxies allow to cut
//! the connections to the store, and those from each edge to the bus.

use std::{net::TcpListener, os::fd::OwnedFd, sync::Arc};

use futures_util::future::join_all;
use mesh_testbed::{Database, Service, nats};
use mesh_tests::proxied::ProxiedServer;

/// The running services and the proxies between them.
pub(crate) struct Environment {
    pub(crate) edges: Vec<Edge>,
    pub(crate) query: Vec<Backend>,
    pub(crate) node_info: Backend,
    pub(crate) to_store: ProxiedServer,
}

/// An edge and the proxy of its connection to the bus.
pub(crate) struct Edge {
    pub(crate) service: Service,
    pub(crate) url: String,
    pub(crate) to_bus: ProxiedServer,
}

/// A service that reads the store, and the number of reads that its earlier processes have answered.
pub(crate) struct Backend {
    pub(crate) service: Service,
    answered_before: u64,
}

impl Environment {
    /// Starts all services and waits until they are ready.
    pub(crate) async fn start(database: &Database, edges: usize, queries: usize) -> Self {
        let prefix = format!("truth{:x}", rand::random::<u64>());
        let to_store = ProxiedServer::start(database.url()).await;
        let (query, node_info, edges) = tokio::join!(
            join_all((0..queries).map(|_| Backend::start("query", &prefix, database, &to_store))),
            Backend::start("node-info", &prefix, database, &to_store),
            join_all((0..edges).map(|_| Edge::start(&prefix))),
        );
        Self { edges, query, node_info, to_store }
    }

    /// The number of reads that the services answered. A lower bound: reads of a killed process after its
    /// last query of metrics are lost.
    pub(crate) async fn answered_reads(&self) -> u64 {
        let mut answered_reads = 0;
        for backend in self.query.iter().chain([&self.node_info]) {
            answered_reads += backend.answered().await;
        }
        answered_reads
    }
}

impl Edge {
    async fn start(prefix: &str) -> Self {
        // The test owns the listening socket, so that connections wait in its queue while the edge restarts.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let to_bus = ProxiedServer::start(nats().await.url()).await;
        let setup =
            Service::configure("edge").env("MESH_BUS_PREFIX", prefix).env("MESH_BUS_URL", to_bus.url());
        let service = setup.socket("http", Arc::new(OwnedFd::from(listener))).start().await;
        Self { service, url: format!("http://{address}"), to_bus }
    }

    /// Restarts the process: after a graceful stop when `is_asked`, else after a kill.
    pub(crate) async fn restart(&mut self, is_graceful: bool) {
        if is_graceful {
            self.service.stop().await;
        }
        self.service.restart().await;
    }
}

impl Backend {
    async fn start(name: &str, prefix: &str, database: &Database, to_store: &ProxiedServer) -> Self {
        let setup = Service::configure(name).env("MESH_BUS_PREFIX", prefix);
        let service = setup.env("MESH_DATABASE_URL", to_store.rewrite(&database.url_of(name))).start().await;
        Self { service, answered_before: 0 }
    }

    /// Restarts the process: after a graceful stop when `is_asked`, else after a kill.
    pub(crate) async fn restart(&mut self, is_graceful: bool) {
        self.answered_before = self.answered().await;
        if is_graceful {
            self.service.stop().await;
        }
        self.service.restart().await;
    }

    async fn answered(&self) -> u64 {
        let metrics = self.service.admin("/metrics").await;
        let counts = metrics.text().lines().filter_map(|line| {
            let (name, count) = line.rsplit_once(' ')?;
            let is_counted =
                name.starts_with("rpc_server_call_duration_seconds_count{") && name.contains("\"OK\"");
            is_counted.then(|| count.parse::<u64>().ok()).flatten()
        });
        self.answered_before + counts.sum::<u64>()
    }
}
