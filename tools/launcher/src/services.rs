//! The services of the mesh and what each of them needs: one row each.
//!
//! A new service is one row of [`SERVICES`].

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use crate::{
    bus::Bus,
    database::Database,
    home::Home,
    managed_process::ReplicaSpec,
    process::ProcessSpec,
    ready::Ready,
    supervisor::{Group, Tier},
};

/// Something that a service needs, passed on as variables or sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The bus and the file with its credentials.
    Bus,
    /// The database.
    Database,
    /// The store of history segments.
    History,
    /// The consensus node's RPC; without one the service does not run.
    Node,
    /// The consensus node's RPC, when there is one.
    NodeIfAny,
    /// The listening sockets for clients, shared by all replicas.
    Sockets,
}

/// One of our workloads. Its name is that of its binary.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The name.
    pub name: &'static str,
    /// Its tier, which orders the shutdown.
    pub tier: Tier,
    /// What it needs.
    pub needs: &'static [Need],
}

/// The service that writes the store, which a mesh may have or not.
pub const INGEST: &str = "ingest";

/// The variable of `export` with the folder in which segments are made.
pub const SCRATCH: &str = "MESH_EXPORT_SCRATCH";

/// Every service, in the order in which they are started.
pub const SERVICES: &[Service] = &[
    Service { name: "edge", tier: Tier::Front, needs: &[Need::Bus, Need::Sockets] },
    Service { name: "query", tier: Tier::Service, needs: &[Need::Bus, Need::Database] },
    Service { name: "node-info", tier: Tier::Service, needs: &[Need::Bus, Need::Database, Need::NodeIfAny] },
    Service { name: "tx-relay", tier: Tier::Service, needs: &[Need::Bus, Need::Node] },
    Service { name: "export", tier: Tier::Service, needs: &[Need::Bus, Need::Database, Need::History] },
    Service { name: INGEST, tier: Tier::Service, needs: &[Need::Bus, Need::Database, Need::Node] },
];

/// The services that can run: some need a consensus node.
pub fn runnable(has_node: bool) -> impl Iterator<Item = &'static Service> {
    SERVICES.iter().filter(move |service| has_node || !service.needs.contains(&Need::Node))
}

/// Finds a service by its name.
pub fn find(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// How long a service may take to finish running requests after SIGTERM, seconds, unless `MESH_STOP_GRACE_S` is set.
pub const GRACE_S: u64 = 10;

const GRACE: &str = "MESH_STOP_GRACE_S";

/// The listening sockets of the edge. The launcher owns them, so that a connection made while no replica runs
/// waits in the backlog for the next one.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// The descriptors with their names in `LISTEN_FDNAMES`.
    pub inherited: Vec<(String, Arc<OwnedFd>)>,
    /// The address of HTTP.
    pub http: SocketAddr,
    /// The address of gRPC.
    pub grpc: SocketAddr,
}

impl Sockets {
    /// Opens both sockets; port 0 takes a free one.
    ///
    /// # Errors
    /// An address cannot be listened on: the address, and why not.
    pub fn bind(host: IpAddr, http_port: u16, grpc_port: u16) -> Result<Self, (SocketAddr, io::Error)> {
        let (http, http_at) = listen(SocketAddr::new(host, http_port))?;
        let (grpc, grpc_at) = listen(SocketAddr::new(host, grpc_port))?;
        let inherited = vec![("http".to_owned(), http), ("grpc".to_owned(), grpc)];
        Ok(Self { inherited, http: http_at, grpc: grpc_at })
    }
}

fn listen(address: SocketAddr) -> Result<(Arc<OwnedFd>, SocketAddr), (SocketAddr, io::Error)> {
    let open = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        Ok((Arc::new(OwnedFd::from(listener)), bound))
    };
    open().map_err(|error| (address, error))
}

/// The environment of the services of one mesh.
#[derive(Clone, Debug)]
pub struct ServiceEnvironment {
    /// The home of the mesh.
    pub home: Home,
    /// The folder with the services' binaries.
    pub binaries: PathBuf,
    /// The bus; every service is its own user there.
    pub bus: Bus,
    /// The database; every service is its own user there.
    pub database: Database,
    /// The URL of the consensus node's RPC, when there is one.
    pub node_url: Option<String>,
    /// The sockets of the edge.
    pub sockets: Sockets,
    /// Further variables of single services.
    pub service_env: Vec<ServiceVariable>,
    /// Further variables for every process, which precede all others.
    pub env: Vec<(String, String)>,
}

/// Whether a variable of this name configures services: theirs, and those of their object store.
pub fn configures_services(name: &str) -> bool {
    ["MESH_", "AWS_"].iter().any(|prefix| name.starts_with(prefix))
}

/// A variable of one service.
#[derive(Clone, Debug)]
pub struct ServiceVariable {
    /// The name of the service.
    pub service: &'static str,
    /// The name of the variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl ServiceEnvironment {
    /// Makes the group of a service.
    pub fn group(self: &Arc<Self>, service: &'static Service) -> Group {
        let around = Arc::clone(self);
        Group {
            name: service.name.to_owned(),
            tier: service.tier,
            scalable: true,
            replica_spec: Box::new(move |replica, generation| {
                around.replica_spec(service, replica, generation)
            }),
        }
    }

    fn replica_spec(&self, service: &Service, replica: u32, generation: u64) -> ReplicaSpec {
        let address_file = self.home.admin_address(service.name, replica, generation);
        let (name, log) = (format!("{}-{replica}", service.name), self.home.log(service.name, replica));
        let mut spec = ProcessSpec::new(name, self.binaries.join(service.name), log)
            // The address of the database has its password; a variable of the shell is another database's.
            .env("MESH_DATABASE_PASSWORD_FILE", "")
            .env("MESH_ADMIN_LISTEN", "127.0.0.1:0")
            .env("MESH_ADMIN_ADDRESS_FILE", address_file.to_string_lossy())
            .env(GRACE, GRACE_S.to_string());
        for need in service.needs {
            match need {
                Need::Bus => spec.env.extend(self.bus.variables(service.name)),
                Need::Database => {
                    spec = spec.env("MESH_DATABASE_URL", self.database.url_of(service.name));
                }
                // Segments are in the folder `segments` below this root.
                Need::History => {
                    spec = spec.env("MESH_HISTORY_URL", self.home.root().to_string_lossy());
                    // The system's temporary folder may be small.
                    if std::env::var_os(SCRATCH).is_none() {
                        spec = spec.env(SCRATCH, self.home.run().to_string_lossy());
                    }
                }
                Need::Node | Need::NodeIfAny => {
                    if let Some(url) = &self.node_url {
                        spec = spec.env("MESH_NODE_URL", url);
                    }
                }
                Need::Sockets => spec.sockets.clone_from(&self.sockets.inherited),
            }
        }
        let of_service = self.service_env.iter().filter(|variable| variable.service == service.name);
        spec.env.extend(of_service.map(|variable| (variable.name.to_owned(), variable.value.clone())));
        spec.env.extend_from_slice(&self.env);
        let grace = self.env.iter().rev().find(|(name, _)| name == GRACE);
        let grace_s = grace.and_then(|(_, value)| value.parse().ok()).unwrap_or(GRACE_S);
        // 500 ms longer than the service's own limit, so that only a hanging one is killed.
        spec.grace = Duration::from_secs(grace_s).saturating_add(Duration::from_millis(500));
        ReplicaSpec { spec, ready: Ready::Admin(address_file) }
    }
}
