//! A private mesh for one benchmark or drill: its own servers and services, in a temporary folder.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use mesh::{
    failure::{Failure, cannot},
    programs,
    up::backing,
};
use mesh_launcher::{
    RestartRule,
    bus::Bus,
    database::Database,
    home::Home,
    let_enter,
    services::{self, ServiceEnvironment, Sockets},
    supervisor::{Group, Supervisor},
};
use mesh_problem::error_chain;
use tempfile::TempDir;
use tokio_postgres::Client;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A temporary folder and the processes that run in it.
pub(crate) struct PrivateMesh {
    pub(crate) home: Home,
    pub(crate) supervisor: Supervisor,
    folder: TempDir,
}

pub(crate) struct Servers {
    /// The database, with the users that services log in as.
    pub(crate) database: Database,
    /// Path of the `postgres` program; `psql` and `pgbench` of the same version are in its folder.
    pub(crate) postgres: PathBuf,
    pub(crate) bus: Bus,
}

/// Which services run, and how.
#[derive(Default)]
pub(crate) struct Layout<'a> {
    /// Numbers of replicas of services; those not listed have one.
    pub(crate) replicas: &'a [(&'a str, u32)],
    /// Additional environment variables for every service.
    pub(crate) env: Vec<(String, String)>,
    /// URL of the consensus node; without one the relay is not started.
    pub(crate) node_url: Option<String>,
    /// Additional environment variables of single replicas; they override those of `env`.
    pub(crate) replica_env: Option<ReplicaEnv>,
}

/// Returns the additional environment variables of a replica, by service name and replica number.
pub(crate) type ReplicaEnv = Arc<dyn Fn(&str, u32) -> Vec<(String, String)> + Send + Sync>;

/// The HTTP addresses of the two edges of a private mesh.
pub(crate) struct Edges {
    /// The edge with default settings.
    pub(crate) cached: SocketAddr,
    /// The edge without a cache.
    pub(crate) uncached: SocketAddr,
}

pub(crate) const UNCACHED_EDGE: &str = "edge-uncached";

impl PrivateMesh {
    /// Creates the folder; no process runs yet. The rule is that for restarting processes that end.
    pub(crate) fn new(rule: RestartRule) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("mesh-private-").tempdir();
        let folder = folder.map_err(|error| cannot("make a temporary folder", &error))?;
        // PostgreSQL may run as another user, who needs access to the folder.
        let_enter(folder.path()).map_err(|error| cannot("open a temporary folder", &error))?;
        let home = Home::at(folder.path()).map_err(|error| cannot("use a temporary folder", &error))?;
        home.create().map_err(|error| Failure::failed(error.to_string()))?;
        let supervisor = Supervisor::new(rule).map_err(|error| cannot("watch processes", &error))?;
        Ok(Self { home, supervisor, folder })
    }

    /// Starts both servers and applies the newest schema to an empty database.
    pub(crate) async fn start_servers(&self) -> Result<Servers, Failure> {
        let programs = backing::programs(&self.home, true, true).await?;
        let (Some(postgres), Some(nats)) = (&programs.postgres, &programs.nats) else {
            return Err(Failure::missing("PostgreSQL and nats-server are needed; `mesh up` installs them"));
        };
        let (database, bus) = tokio::try_join!(
            backing::start_postgres(&self.home, &self.supervisor, postgres, &[]),
            // Benchmarks may use several bus prefixes on one server.
            backing::start_nats(&self.home, &self.supervisor, nats, "*", &[]),
        )?;
        let migrated = mesh_loader::migrate::migrate(database.url()).await;
        migrated.map_err(|error| Failure::failed(error_chain(&error)))?;
        Ok(Servers { database, postgres: postgres.postgres.clone(), bus })
    }

    /// Builds and starts every service, and a second edge without a cache.
    pub(crate) async fn start_services(
        &self,
        servers: &Servers,
        layout: &Layout<'_>,
    ) -> Result<Edges, Failure> {
        let environment = self.service_environment(servers, layout)?;
        let mut uncached = environment.clone();
        uncached.env.extend(variables(&[("MESH_EDGE_CACHE_BYTES", "0")]));
        let (uncached_edge, uncached) = self.service_named(uncached, "edge", UNCACHED_EDGE)?;
        let edges = Edges { cached: environment.sockets.http, uncached };
        let environment = Arc::new(environment);
        let mut groups: Vec<Group> =
            services::runnable(layout.node_url.is_some()).map(|service| environment.group(service)).collect();
        groups.push(uncached_edge);
        if let Some(replica_env) = &layout.replica_env {
            groups = groups.into_iter().map(|group| with_env(group, Arc::clone(replica_env))).collect();
        }
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        for group in groups {
            let wanted = layout.replicas.iter().find(|(name, _)| *name == group.name);
            self.add(group, wanted.map_or(1, |(_, replicas)| *replicas))?;
        }
        self.ready(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        Ok(edges)
    }

    /// Starts services under other process names with additional variables, and waits until they are
    /// ready; returns the HTTP address of the first. They are
    /// separate from the other services only when the variables set another bus prefix.
    pub(crate) async fn start_named(
        &self,
        servers: &Servers,
        services: &[(&str, &str)],
        env: Vec<(String, String)>,
    ) -> Result<SocketAddr, Failure> {
        let environment = self.service_environment(servers, &Layout { env, ..Layout::default() })?;
        let mut addresses = Vec::new();
        for (service, name) in services {
            let (group, address) = self.service_named(environment.clone(), service, name)?;
            self.add(group, 1)?;
            addresses.push(address);
        }
        self.ready(&services.iter().map(|(_, name)| *name).collect::<Vec<_>>()).await?;
        Ok(addresses[0])
    }

    pub(crate) fn service_environment(
        &self,
        servers: &Servers,
        layout: &Layout<'_>,
    ) -> Result<ServiceEnvironment, Failure> {
        Ok(ServiceEnvironment {
            home: self.home.clone(),
            binaries: programs::services()?,
            bus: servers.bus.clone(),
            database: servers.database.clone(),
            node_url: layout.node_url.clone(),
            sockets: sockets()?,
            service_env: Vec::new(),
            env: layout.env.clone(),
        })
    }

    /// A service under another process name, with its own sockets and folder. It is not started.
    pub(crate) fn service_named(
        &self,
        environment: ServiceEnvironment,
        service: &str,
        name: &str,
    ) -> Result<(Group, SocketAddr), Failure> {
        let service =
            services::find(service).ok_or_else(|| Failure::failed(format!("there is no {service}")))?;
        let home = Home::at(self.folder.path().join(name));
        let home = home.map_err(|error| cannot("use a temporary folder", &error))?;
        home.create().map_err(|error| Failure::failed(error.to_string()))?;
        let environment = Arc::new(ServiceEnvironment { home, sockets: sockets()?, ..environment });
        Ok((Group { name: name.to_owned(), ..environment.group(service) }, environment.sockets.http))
    }

    /// The log files of the replicas of [`PrivateMesh::service_named`].
    pub(crate) fn group_logs(&self, name: &str, replicas: u32) -> Vec<PathBuf> {
        let home = Home::at(self.folder.path().join(name));
        let log = |replica| Some(home.as_ref().ok()?.log(name, replica));
        (0..replicas).filter_map(log).collect()
    }

    /// Adds processes to the supervisor, which starts them and keeps them running.
    pub(crate) fn add(&self, group: Group, replicas: u32) -> Result<(), Failure> {
        self.supervisor.add(group, replicas).map_err(|error| Failure::failed(error.to_string()))
    }

    /// Waits until every process of these names is ready.
    pub(crate) async fn ready(&self, names: &[&str]) -> Result<(), Failure> {
        let ready = self.supervisor.ready(names, TIMEOUT).await;
        ready.map_err(|error| backing::not_ready(&self.home, &error))
    }

    /// Stops all processes and removes the folder.
    pub(crate) async fn stop(self) {
        self.supervisor.shutdown().await;
        // When the database's data had to be stored elsewhere, the folder has a symbolic link to it.
        if let Ok(elsewhere) = std::fs::read_link(self.folder.path().join("postgres")) {
            let _ = std::fs::remove_dir_all(elsewhere);
        }
    }
}

impl Servers {
    /// Opens a connection to the database as its owner.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        connect(self.database.url()).await
    }

    /// The `host:port` of the database server.
    pub(crate) fn database_address(&self) -> &str {
        let url = self.database.url();
        let there = url.rsplit_once('@').map_or(url, |(_, there)| there);
        there.split_once('/').map_or(there, |(address, _)| address)
    }

    /// Runs statements in sequence in their own session; on failure `step` names what could not
    /// be done.
    pub(crate) async fn execute(&self, step: &str, statements: &[&str]) -> Result<(), Failure> {
        let database = self.connect().await?;
        for statement in statements {
            database.batch_execute(statement).await.map_err(|error| cannot(step, &error))?;
        }
        Ok(())
    }
}

/// Opens a connection to a database as the user of its URL.
pub(crate) async fn connect(url: &str) -> Result<Client, Failure> {
    let client = mesh_store::connect(url, "mesh laboratory").await;
    client.map_err(|error| Failure::failed(error_chain(&error)))
}

/// The connection that is there, or a new one.
pub(crate) async fn connected<'a>(
    url: &str,
    client: &'a mut Option<Client>,
) -> Result<&'a mut Client, Failure> {
    match client {
        Some(client) => Ok(client),
        none => Ok(none.insert(connect(url).await?)),
    }
}

/// The same group with additional environment variables for its replicas.
fn with_env(group: Group, replica_env: ReplicaEnv) -> Group {
    let (name, replica_spec) = (group.name.clone(), group.replica_spec);
    let replica_spec = Box::new(move |replica, generation| {
        let mut replica_spec = replica_spec(replica, generation);
        replica_spec.spec.env.extend(replica_env(&name, replica));
        replica_spec
    });
    Group { replica_spec, ..group }
}

pub(crate) fn variables<V: ToString>(pairs: &[(&str, V)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect()
}

/// Binds sockets to free ports of the loopback address.
pub(crate) fn sockets() -> Result<Sockets, Failure> {
    Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, 0)
        .map_err(|(address, error)| Failure::failed(format!("cannot listen on {address} ({error})")))
}
