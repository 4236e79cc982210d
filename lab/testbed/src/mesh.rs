//! A whole mesh for one test: services behind an edge, separated from all other meshes on the shared bus.

use std::{
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use futures_util::future::join_all;
use mesh_launcher::{
    bus::Bus,
    servers::TlsFiles,
    services::{INGEST, Need, Sockets, runnable},
};
use tokio::sync::Semaphore;

use crate::{Answer, Database, Service, certify, http_client, servers, service, tls_tunnel};

/// Meshes of one test process that start at the same time: each is five processes, and a start needs CPU.
static STARTS: Semaphore = Semaphore::const_new(2);

/// A running mesh. Dropping it kills its services.
#[derive(Debug)]
pub struct Mesh {
    services: Vec<(&'static str, Service)>,
    http: SocketAddr,
    grpc: SocketAddr,
    client: reqwest::Client,
    /// The edge's own addresses and its certificate, when clients reach it through tunnels.
    tls: Option<EdgeTls>,
}

/// TLS of an edge.
#[derive(Debug)]
pub struct EdgeTls {
    /// Where the edge takes HTTP.
    pub http: SocketAddr,
    /// The files with its certificate, its key, and the authority that clients have to trust.
    pub files: TlsFiles,
}

/// The configuration of a mesh; made by [`Mesh::configure`].
#[derive(Debug)]
pub struct MeshSetup<'a> {
    database: &'a Database,
    bus: Option<Bus>,
    env: Vec<(String, String)>,
    absent: Vec<String>,
    binaries: Option<PathBuf>,
    with_tls: bool,
}

impl MeshSetup<'_> {
    /// Sets a variable of every service.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Uses another bus than the one that all tests share.
    #[must_use]
    pub fn bus(mut self, bus: &Bus) -> Self {
        self.bus = Some(bus.clone());
        self
    }

    /// Lets `ingest` write the blocks of the node into the database. Without it the database is the test's own.
    #[must_use]
    pub fn ingest(mut self) -> Self {
        self.absent.retain(|name| name != INGEST);
        self
    }

    /// Leaves services out.
    #[must_use]
    pub fn without(mut self, services: &[&str]) -> Self {
        self.absent.extend(services.iter().copied().map(str::to_owned));
        self
    }

    /// Runs the services' binaries from this folder instead of the one that holds the test's binaries.
    #[must_use]
    pub fn binaries(mut self, folder: impl Into<PathBuf>) -> Self {
        self.binaries = Some(folder.into());
        self
    }

    /// Gives the edge a certificate. [`Mesh::url`] and [`Mesh::grpc_url`] are tunnels then, so that clients need
    /// no TLS.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.with_tls = true;
        self
    }

    /// Starts the services and waits until every one is ready. At most two meshes of a process start at the
    /// same time; others wait.
    pub async fn start(mut self) -> Mesh {
        let _start = STARTS.acquire().await;
        let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, 0)
            .unwrap_or_else(|(address, error)| panic!("cannot listen on {address}: {error}"));
        let bus_prefix = service::bus_prefix();
        let history = servers::folder().join(format!("history-{bus_prefix}"));
        let files = self.with_tls.then(|| certify(&servers::folder().join(format!("tls-{bus_prefix}"))));
        if let Some(files) = &files {
            let of_edge = [("MESH_EDGE_TLS_CERT", &files.certificate), ("MESH_EDGE_TLS_KEY", &files.key)];
            self.env
                .extend(of_edge.map(|(name, file)| (name.to_owned(), file.to_string_lossy().into_owned())));
        }
        let has_node = self.env.iter().any(|(name, _)| name == "MESH_NODE_URL");
        let present =
            runnable(has_node).filter(|service| !self.absent.iter().any(|name| name == service.name));
        let starting = present.map(|service| {
            let mut setup = Service::configure(service.name).env("MESH_BUS_PREFIX", &bus_prefix);
            setup.bus.clone_from(&self.bus);
            if let Some(folder) = &self.binaries {
                setup.spec.program = folder.join(service.name);
            }
            for need in service.needs {
                match need {
                    Need::Database => setup = setup.database(self.database),
                    Need::History => setup = setup.env("MESH_HISTORY_URL", history.to_string_lossy()),
                    Need::Sockets => setup.spec.sockets.clone_from(&sockets.inherited),
                    // The testbed connects every service to the bus itself; a node is given as a variable where
                    // there is one.
                    Need::Bus | Need::Node | Need::NodeIfAny => {}
                }
            }
            setup.spec.env.extend(self.env.iter().cloned());
            async move { (service.name, setup.start().await) }
        });
        let services = join_all(starting).await;
        let (mut http, mut grpc, client) = (sockets.http, sockets.grpc, http_client());
        if let Some(files) = &files {
            http = tls_tunnel(sockets.http, &files.ca);
            grpc = tls_tunnel(sockets.grpc, &files.ca);
        }
        let tls = files.map(|files| EdgeTls { http: sockets.http, files });
        Mesh { services, http, grpc, client, tls }
    }
}

impl Mesh {
    /// Starts every service on a database.
    pub async fn start(database: &Database) -> Self {
        Self::configure(database).start().await
    }

    /// Begins the configuration of a mesh.
    pub fn configure(database: &Database) -> MeshSetup<'_> {
        MeshSetup {
            database,
            bus: None,
            env: Vec::new(),
            absent: vec![INGEST.to_owned()],
            binaries: None,
            with_tls: env::var_os("MESH_TEST_EDGE_TLS").is_some(),
        }
    }

    /// Address of the edge for HTTP: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// TLS of the edge, after [`MeshSetup::tls`].
    pub fn tls(&self) -> &EdgeTls {
        self.tls.as_ref().unwrap_or_else(|| panic!("the edge of this mesh has no TLS"))
    }

    /// Address of the edge for gRPC: `http://127.0.0.1:<port>`.
    pub fn grpc_url(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// Gets a path with its query, such as `/api/v2/candle?candleId=c1`.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(reqwest::Method::GET, path)).await
    }

    /// Begins a request of any kind; [`Answer::to`] sends it.
    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url()))
    }

    /// One of its services.
    pub fn service(&self, name: &str) -> &Service {
        let found = self.services.iter().find(|(service, _)| *service == name);
        found.map_or_else(|| panic!("this mesh has no {name}"), |(_, service)| service)
    }

    /// Starts the services again that have ended.
    pub async fn restart_ended(&mut self) {
        for (_, service) in self.services.iter_mut().filter(|(_, service)| service.has_ended()) {
            service.restart().await;
        }
    }

    /// One of its services, to restart it.
    pub fn service_mut(&mut self, name: &str) -> &mut Service {
        let found = self.services.iter_mut().find(|(service, _)| *service == name);
        found.map_or_else(|| panic!("this mesh has no {name}"), |(_, service)| service)
    }
}
