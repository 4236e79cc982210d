//! The bus and the database server that all tests of one process share.
//!
//! `MESH_TEST_POSTGRES_URL`, `MESH_TEST_NATS_URL` and `MESH_TEST_NATS_CREDENTIALS` (a folder with a file for
//! each user) name running servers; without them a private pair is started at first use, nats-server with TLS
//! where `MESH_TEST_NATS_TLS` is set. Private servers end with the test process. Their folder, in the
//! system's temporary folder, is locked while that process lives and removed by the next test process that
//! finds it unlocked.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use mesh_bus::BusConfig;
use mesh_launcher::{
    bus::{Bus, BusCredentials},
    process::Process,
    servers::{self, Durability, Nats, NatsSettings, Postgres, ServerError},
};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::tls;

pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);
/// The bus prefix of the users' permissions: any mesh.
pub(crate) const ANY_MESH: &str = "*";
const FOLDER_PREFIX: &str = "mesh-testbed-";
const LOCK: &str = "lock";

/// The PostgreSQL that the tests of this process share.
#[derive(Debug)]
pub struct PostgresServer {
    url: String,
    _process: Option<Process>,
}

impl PostgresServer {
    /// The address of its maintenance database, as a user who may create databases.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The nats-server that the tests of this process share. Each user has the same permissions in every mesh.
#[derive(Debug)]
pub struct NatsServer {
    bus: Bus,
    _process: Option<Process>,
}

impl NatsServer {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.bus.url
    }

    /// Its address and the folder of its users' credentials.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The connection settings of a user; `prefix` is the mesh's subject prefix on the bus.
    pub fn config(&self, user: &str, prefix: &str) -> BusConfig {
        let config = self.bus.config(user, prefix);
        config.unwrap_or_else(|error| panic!("no credentials of {user}: {error}"))
    }
}

/// Returns the shared PostgreSQL, starting it if this is the first call.
pub async fn postgres() -> &'static PostgresServer {
    static SERVER: OnceCell<PostgresServer> = OnceCell::const_new();
    SERVER.get_or_init(start_postgres).await
}

/// Returns the shared nats-server, starting it if this is the first call.
pub async fn nats() -> &'static NatsServer {
    static SERVER: OnceCell<NatsServer> = OnceCell::const_new();
    SERVER.get_or_init(start_nats).await
}

async fn start_postgres() -> PostgresServer {
    if let Ok(url) = env::var("MESH_TEST_POSTGRES_URL") {
        return PostgresServer { url, _process: None };
    }
    let programs = servers::find_postgres().unwrap_or_else(|| missing_program("PostgreSQL 15 or later"));
    let folder = folder();
    let start = async {
        let log = folder.join("logs/postgres.log");
        let server =
            Postgres::prepare(&programs, &folder.join("postgres"), &log, Durability::Throwaway).await?;
        let process = servers::start(&server.spec(), || server.ready(READY_WITHIN)).await?;
        Ok::<_, ServerError>(PostgresServer { url: server.url_of("postgres"), _process: Some(process) })
    };
    start.await.unwrap_or_else(|error| panic!("no PostgreSQL for the tests: {error}"))
}

async fn start_nats() -> NatsServer {
    if let Ok(url) = env::var("MESH_TEST_NATS_URL") {
        let folder = env::var_os("MESH_TEST_NATS_CREDENTIALS").map(PathBuf::from);
        let bus = Bus { url, credentials: folder.map(BusCredentials::Each), tls_ca: None };
        return NatsServer { bus, _process: None };
    }
    let folder = folder();
    let start = async {
        let tls = env::var_os("MESH_TEST_NATS_TLS").map(|_| tls::certify(&folder.join("tls")));
        let (settings, log) =
            (NatsSettings { tls, ..NatsSettings::of(ANY_MESH) }, folder.join("logs/nats.log"));
        let server = Nats::prepare(&nats_program(), &folder.join("nats"), &log, &settings).await?;
        let process = servers::start(&server.spec(), || server.ready(READY_WITHIN)).await?;
        Ok::<_, ServerError>(NatsServer { bus: server.bus(), _process: Some(process) })
    };
    start.await.unwrap_or_else(|error| panic!("no nats-server for the tests: {error}"))
}

pub(crate) fn nats_program() -> PathBuf {
    servers::find_nats().unwrap_or_else(|| missing_program("nats-server"))
}

fn missing_program<T>(what: &str) -> T {
    panic!(
        "{what} is not on this machine: `cargo mesh test` installs it on Debian, or install it on the PATH"
    )
}

/// The folder of this process, created at first use.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (path, _lock) = FOLDER.get_or_init(|| {
        let root = env::temp_dir();
        sweep(&root);
        make_folder(&root)
            .unwrap_or_else(|error| panic!("cannot make a folder in {}: {error}", root.display()))
    });
    path
}

/// A temporary folder that other users may enter, since PostgreSQL started by root runs as one of them.
pub fn enterable_folder() -> TempDir {
    let make = || {
        let folder = tempfile::tempdir()?;
        mesh_launcher::let_enter(folder.path())?;
        std::io::Result::Ok(folder)
    };
    make().unwrap_or_else(|error| panic!("no folder for a test: {error}"))
}

/// Makes a folder that other users may enter, and locks it.
fn make_folder(root: &Path) -> std::io::Result<(PathBuf, File)> {
    let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(root)?;
    mesh_launcher::let_enter(folder.path())?;
    let lock = File::create(folder.path().join(LOCK))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok((folder.keep(), lock))
}

/// Removes the folders of ended test processes.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX) {
            remove_if_unlocked(&entry.path());
        }
    }
}

fn remove_if_unlocked(folder: &Path) {
    // A folder without a lock file is being created by another process.
    let Ok(lock) = File::open(folder.join(LOCK)) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    // Best effort: the next test process tries again.
    if let Ok(elsewhere) = fs::read_link(folder.join("postgres")) {
        let _ = fs::remove_dir_all(elsewhere);
    }
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_folders_of_ended_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let (living, _lock) = make_folder(root.path()).unwrap();
        let (left, lock) = make_folder(root.path()).unwrap();
        let data = root.path().join("elsewhere");
        fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, left.join("postgres")).unwrap();
        fs::create_dir(root.path().join("stranger")).unwrap();
        drop(lock);
        // A program that another test is just starting holds the lock, too, until it has closed what it inherited.
        let is_removed = async || {
            sweep(root.path());
            !left.exists() && !data.exists()
        };
        crate::eventually(Duration::from_secs(10), "the folder stays", is_removed).await;
        assert!(living.exists() && root.path().join("stranger").exists());
    }
}
