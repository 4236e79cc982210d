//! A mesh for one benchmark: private servers and the services asked for, in a folder that goes away with it.

use std::fs::Permissions;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use mesh_launcher::RestartRule;
use mesh_launcher::home::Home;
use mesh_launcher::services::{self, Sockets, Surroundings};
use mesh_launcher::supervisor::Supervisor;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::failure::{Failure, with_causes};
use crate::up::{backing, build};

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder and what runs in it.
pub(super) struct PrivateMesh {
    home: Home,
    supervisor: Supervisor,
    folder: TempDir,
}

/// The servers of a private mesh.
pub(super) struct Servers {
    database_url: String,
    bus: backing::Bus,
}

impl PrivateMesh {
    /// Makes the folder; nothing runs yet.
    pub(super) fn new() -> Result<Self, Failure> {
        // The owner of the database may be another user, who has to enter.
        let readable = Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("mesh-bench-").permissions(readable).tempdir();
        let folder = folder.map_err(|error| cannot("make a temporary folder", &error))?;
        let home = Home::at(folder.path()).map_err(|error| cannot("use a temporary folder", &error))?;
        home.create().map_err(|error| Failure::failed(error.to_string()))?;
        let supervisor =
            Supervisor::new(RestartRule::default()).map_err(|error| cannot("watch processes", &error))?;
        Ok(Self { home, supervisor, folder })
    }

    /// Starts both servers, with the newest schema in an empty database.
    pub(super) async fn start_servers(&self) -> Result<Servers, Failure> {
        let programs = backing::programs(&self.home, true, true).await?;
        let (Some(postgres), Some(nats)) = (&programs.postgres, &programs.nats) else {
            return Err(Failure::missing("PostgreSQL and nats-server are needed; `mesh up` installs them"));
        };
        let (database_url, bus) = tokio::try_join!(
            backing::start_postgres(&self.home, &self.supervisor, postgres, &[]),
            backing::start_nats(&self.home, &self.supervisor, nats, &[]),
        )?;
        mesh_store::migrate::migrate(&database_url)
            .await
            .map_err(|error| Failure::failed(with_causes(&error)))?;
        Ok(Servers { database_url, bus })
    }

    /// Builds and starts services, and gives the address at which the edge answers HTTP.
    pub(super) async fn start_services(&self, servers: &Servers, names: &[&str]) -> Result<String, Failure> {
        let program =
            std::env::current_exe().map_err(|error| cannot("tell where this program lies", &error))?;
        let binaries = build::build(&program).await?;
        let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, 0)
            .map_err(|(address, error)| Failure::failed(format!("cannot listen on {address} ({error})")))?;
        let url = format!("http://{}", sockets.http);
        let around = Arc::new(Surroundings {
            home: self.home.clone(),
            binaries,
            bus_url: servers.bus.url.clone(),
            bus_credentials: servers.bus.credentials.clone(),
            database_url: servers.database_url.clone(),
            sockets,
            env: Vec::new(),
        });
        for service in services::SERVICES.iter().filter(|service| names.contains(&service.name)) {
            self.supervisor
                .add(around.group(service), 1)
                .map_err(|error| Failure::failed(error.to_string()))?;
        }
        let ready = self.supervisor.ready(names, PATIENCE).await;
        ready.map_err(|error| backing::not_ready(&self.home, &error))?;
        Ok(url)
    }

    /// Stops whatever runs and leaves nothing behind.
    pub(super) async fn stop(self) {
        self.supervisor.shutdown().await;
        // Where the database could not live in the folder itself, a link in it leads to its data.
        if let Ok(elsewhere) = std::fs::read_link(self.folder.path().join("postgres")) {
            let _ = std::fs::remove_dir_all(elsewhere);
        }
    }
}

impl Servers {
    /// Opens a connection to the database with some settings of the session (`-c name=value …`).
    pub(super) async fn connect(&self, settings: &str) -> Result<Client, Failure> {
        let unreadable = |error: tokio_postgres::Error| cannot("connect to the database", &error);
        let mut config: tokio_postgres::Config = self.database_url.parse().map_err(unreadable)?;
        config.options(settings);
        let (client, connection) = config.connect(NoTls).await.map_err(unreadable)?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// Says which step failed.
pub(super) fn cannot(step: &str, error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!("the benchmark cannot {step}: {}", with_causes(error)))
}
