//! Where it plays: two edges, two `query`, one `node-info` over one store, with ways to the store and from
//! each edge to the bus that can be cut.

use std::{net::TcpListener, os::fd::OwnedFd, sync::Arc};

use futures_util::future::join_all;
use mesh_testbed::{Database, Service, nats};
use mesh_tests::proxied::ProxiedServer;

/// The services and the ways between them.
pub(crate) struct Stage {
    pub(crate) edges: Vec<Edge>,
    pub(crate) query: Vec<Backend>,
    pub(crate) node_info: Backend,
    pub(crate) to_store: ProxiedServer,
}

/// An edge, and its way to the bus.
pub(crate) struct Edge {
    pub(crate) service: Service,
    pub(crate) url: String,
    pub(crate) to_bus: ProxiedServer,
}

/// A service that reads the store, and how many reads its earlier lives have answered.
pub(crate) struct Backend {
    pub(crate) service: Service,
    answered_before: u64,
}

impl Stage {
    /// Starts everything.
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

    /// How many reads were asked of the services, at least: what a killed one did last is lost.
    pub(crate) async fn asked(&self) -> u64 {
        let mut asked = 0;
        for backend in self.query.iter().chain([&self.node_info]) {
            asked += backend.answered().await;
        }
        asked
    }
}

impl Edge {
    async fn start(prefix: &str) -> Self {
        // The test holds the socket, so that an edge that comes back finds those who wait for it.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let to_bus = ProxiedServer::start(nats().await.url()).await;
        let setup =
            Service::configure("edge").env("MESH_BUS_PREFIX", prefix).env("MESH_BUS_URL", to_bus.url());
        let service = setup.socket("http", Arc::new(OwnedFd::from(listener))).start().await;
        Self { service, url: format!("http://{address}"), to_bus }
    }

    /// Ends it and starts it anew.
    pub(crate) async fn restart(&mut self, is_asked: bool) {
        if is_asked {
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

    /// Ends it and starts it anew.
    pub(crate) async fn restart(&mut self, is_asked: bool) {
        self.answered_before = self.answered().await;
        if is_asked {
            self.service.stop().await;
        }
        self.service.restart().await;
    }

    async fn answered(&self) -> u64 {
        let metrics = self.service.admin("/metrics").await;
        let counts = metrics.text().lines().filter_map(|line| {
            let (name, count) = line.rsplit_once(' ')?;
            let is_wanted =
                name.starts_with("rpc_server_call_duration_seconds_count{") && name.contains("\"OK\"");
            is_wanted.then(|| count.parse::<u64>().ok()).flatten()
        });
        self.answered_before + counts.sum::<u64>()
    }
}
