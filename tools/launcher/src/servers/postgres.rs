//! A private PostgreSQL: its folder, settings, process specification and readiness probe.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio_postgres::NoTls;

use super::{
    ServerError, files,
    find::{PostgresPrograms, find_postgres_version},
    poll_ready, run_to_end,
};
use crate::{
    database::Database,
    process::{ProcessSpec, Signal},
};

mod leftovers;
mod owner;

use owner::Owner;

/// The owner of the data and the database that the mesh uses.
const NAME: &str = "mesh";

/// The operator's own settings, in the folder of the data; included last.
const OPERATOR_SETTINGS: &str = "local.conf";

/// Whether the data must survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Every commit is on disk before its answer.
    Durable,
    /// Commits survive a kill of the server but not a crash of the machine: for tests.
    Throwaway,
}

/// A private PostgreSQL that was prepared and can be started.
#[derive(Debug, Clone)]
pub struct Postgres {
    programs: PostgresPrograms,
    owner: Option<Owner>,
    data: PathBuf,
    log: PathBuf,
    port: u16,
    password: String,
}

impl Postgres {
    /// Creates the data of a new server in `folder`, or reuses existing data. Call it while the server is
    /// down, from the one launcher that owns the folder: a server left over from a killed launcher is
    /// stopped, and the stored port is replaced when another process listens on it.
    ///
    /// PostgreSQL refuses to run as root. Started by root, the server and its data belong to the user
    /// `postgres` (or `nobody`), and where that user cannot reach `folder` the data goes below
    /// `/var/lib/mesh-postgres`, and `folder` becomes a link to it.
    ///
    /// # Errors
    /// A file cannot be written, a left-over server does not stop, or the data is of a version that is not
    /// on this machine.
    pub async fn prepare(
        programs: &PostgresPrograms,
        folder: &Path,
        log: &Path,
        durability: Durability,
    ) -> Result<Self, ServerError> {
        let (folder, owner) = owner::settle(folder)?;
        let data = folder.join("data");
        let programs = match version_of(&data) {
            Some(made_by) if made_by != programs.major => find_postgres_version(made_by)
                .ok_or_else(|| ServerError::OtherVersion(folder.clone(), made_by))?,
            _ => programs.clone(),
        };
        let password_file = folder.join("password");
        let password = match version_of(&data) {
            // Only initdb sets it: another one would be none.
            Some(_) => files::stored_secret(&password_file)?,
            None => files::persistent_secret(&password_file)?,
        };
        let log = log.to_owned();
        let mut server = Self { programs, owner, data, log, port: 0, password };
        if version_of(&server.data).is_none() {
            server.make_data(&folder, &password_file, durability).await?;
        }
        leftovers::clear(&server.data).await?;
        server.port = files::persistent_port(&folder.join("port"))?;
        server.write_settings(durability)?;
        Ok(server)
    }

    /// The major version that made the data in `folder`; `None` without data.
    pub fn made_by(folder: &Path) -> Option<u32> {
        version_of(&folder.join("data"))
    }

    /// The process id of the server that runs on the data in `folder`, also one left by a killed launcher.
    pub fn running_in(folder: &Path) -> Option<u32> {
        let data = fs::canonicalize(folder).ok()?.join("data");
        leftovers::server_of(&data).map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// The process specification. SIGINT is PostgreSQL's fast shutdown: it ends all sessions and writes a
    /// checkpoint.
    pub fn spec(&self) -> ProcessSpec {
        let mut spec = self.program("postgres", &self.programs.postgres);
        spec.args = vec!["-D".into(), self.data.display().to_string()];
        spec.stop_signal = Signal::INT;
        spec
    }

    /// Shuts it down fast if it waits for its sessions to end: services keep theirs, and there are no new ones.
    pub fn hasten_shutdown(&self) {
        leftovers::hasten_shutdown(&self.data);
    }

    /// The address of the database `mesh`, with its password.
    pub fn url(&self) -> String {
        self.url_of(NAME)
    }

    /// The address of a database of this server, with its password.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{NAME}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The database `mesh` with a password for each of these users, stored in files next to the data.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn database(&self, users: &[&str]) -> Result<Database, ServerError> {
        let folder = self.data.with_file_name("users");
        files::make_folder(&folder)?;
        let keep = |user: &&str| Ok(((*user).to_owned(), files::persistent_secret(&folder.join(user))?));
        Ok(Database::new(&self.url(), users.iter().map(keep).collect::<Result<_, ServerError>>()?))
    }

    /// Waits until the server answers, and creates the database `mesh` if it does not exist.
    ///
    /// # Errors
    /// It does not answer in time.
    pub async fn ready(&self, within: Duration) -> Result<(), ServerError> {
        let probe = || async {
            self.probe().await.map_err(|error| {
                error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
            })
        };
        poll_ready("PostgreSQL", format!("127.0.0.1:{}", self.port), within, probe).await
    }

    async fn probe(&self) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url_of("postgres"), NoTls).await?;
        let ask = async {
            let found = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&NAME]).await?;
            if found.is_none() {
                client.batch_execute(&format!("CREATE DATABASE {NAME}")).await?;
            }
            Ok(())
        };
        // The connection is polled here and dropped with its client, so that nothing outlives the probe.
        tokio::select! {
            asked = ask => asked,
            ended = connection => ended,
        }
    }

    /// Runs initdb in a temporary folder next to that of the data and renames it, so that an interrupted one
    /// leaves no partial data there.
    async fn make_data(
        &self,
        folder: &Path,
        password_file: &Path,
        durability: Durability,
    ) -> Result<(), ServerError> {
        let fresh = folder.join("data.new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh).map_err(ServerError::file(&fresh))?;
        }
        files::make_folder(&fresh)?;
        if let Some(owner) = &self.owner {
            owner.take(&fresh)?;
            owner.take(password_file)?;
        }
        let mut spec = self.program("initdb", &self.programs.initdb);
        spec.args = vec![
            format!("--pgdata={}", fresh.display()),
            format!("--username={NAME}"),
            format!("--pwfile={}", password_file.display()),
            "--auth=scram-sha-256".into(),
            "--locale=C".into(),
            "--encoding=UTF8".into(),
            "--no-instructions".into(),
        ];
        if durability == Durability::Throwaway {
            spec.args.push("--no-sync".into());
        }
        run_to_end(&spec).await?;
        fs::rename(&fresh, &self.data).map_err(ServerError::file(&self.data))
    }

    fn program(&self, name: &str, program: &Path) -> ProcessSpec {
        let mut spec = ProcessSpec::new(name, program, &self.log);
        spec.clear_env = true;
        spec.user = self.owner.as_ref().map(Owner::ids);
        // The owner of the data may not be able to enter this process's working directory.
        spec.directory = Some(PathBuf::from("/"));
        spec
    }

    fn write_settings(&self, durability: Durability) -> Result<(), ServerError> {
        let file = self.data.join("postgresql.conf");
        files::write_private(&file, &settings(self.port, durability))?;
        match &self.owner {
            Some(owner) => {
                owner.take(&file)?;
                // The operator may have written it as root, for root only.
                owner.take_from_root(&self.data.join(OPERATOR_SETTINGS))
            }
            None => Ok(()),
        }
    }
}

fn settings(port: u16, durability: Durability) -> String {
    let by_durability = match durability {
        Durability::Durable => "max_connections = 200\nshared_buffers = 256MB\nmax_wal_size = 2GB\n",
        // One throwaway server serves the meshes of all tests that run in parallel.
        Durability::Throwaway => {
            "max_connections = 600\nshared_buffers = 64MB\nfsync = off\nfull_page_writes = off\n"
        }
    };
    format!(
        "# Rewritten at every start of the mesh; put your settings into {OPERATOR_SETTINGS}.\n\
         listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = ''\n\
         ssl = off\n\
         password_encryption = 'scram-sha-256'\n\
         jit = off\n\
         timezone = 'UTC'\n\
         log_timezone = 'UTC'\n\
         log_destination = 'stderr'\n\
         logging_collector = off\n\
         log_line_prefix = '%m [%p] %q%a '\n\
         lc_messages = 'C'\n\
         {by_durability}\
         include_if_exists = '{OPERATOR_SETTINGS}'\n"
    )
}

/// The major version that made the data, or `None` when there is none yet.
fn version_of(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use mesh_testbed::enterable_folder;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        process::Process,
        servers::{find_postgres, start},
    };

    const LONG: Duration = Duration::from_secs(30);

    async fn prepare(home: &tempfile::TempDir) -> Postgres {
        let programs = find_postgres().unwrap();
        let log = home.path().join("logs/postgres.log");
        let folder = home.path().join("postgres");
        Postgres::prepare(&programs, &folder, &log, Durability::Throwaway).await.unwrap()
    }

    async fn run(server: &Postgres) -> Process {
        start(&server.spec(), || server.ready(LONG)).await.unwrap()
    }

    async fn ask(server: &Postgres, statement: &str) -> Vec<Option<String>> {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let answer = client.simple_query(statement).await.unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
        let rows = answer.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
            _ => None,
        });
        rows.collect()
    }

    #[tokio::test]
    async fn a_private_server_keeps_its_port_and_data_over_kills_and_stale_lock_files() {
        let home = enterable_folder();
        let first = prepare(&home).await;
        let process = run(&first).await;
        let shown = ask(&first, "SELECT current_database() || ' ' || current_user || ' ' || pg_encoding_to_char(encoding) || ' ' || datcollate || ' ' || current_setting('timezone') || ' ' || current_setting('fsync') FROM pg_database WHERE datname = 'mesh'").await;
        assert_eq!(shown, [Some("mesh mesh UTF8 C UTC off".to_owned())]);
        ask(&first, "CREATE TABLE kept AS SELECT 7 AS n").await;
        let wrong = first.url().replace(&first.password, "wrong");
        assert!(tokio_postgres::connect(&wrong, NoTls).await.is_err());

        // Restarted by its spec alone, as a supervisor does.
        process.signal(Signal::KILL).unwrap();
        process.wait().await.unwrap();
        let process = run(&first).await;
        assert_eq!(ask(&first, "SELECT n FROM kept").await, [Some("7".to_owned())]);

        // A stale lock file whose process id belongs to another process (here: this test).
        process.signal(Signal::KILL).unwrap();
        process.wait().await.unwrap();
        let lock = first.data.join("postmaster.pid");
        let text = fs::read_to_string(&lock).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        fs::write(&lock, format!("{}\n{rest}", std::process::id())).unwrap();
        let second = prepare(&home).await;
        assert_eq!(second.url(), first.url());
        let process = run(&second).await;
        assert_eq!(ask(&second, "SELECT n FROM kept").await, [Some("7".to_owned())]);
        assert_eq!(process.stop().await.unwrap().code(), Some(0));
        assert!(!lock.exists(), "a stopped server leaves no lock file");
    }

    #[tokio::test]
    async fn a_server_left_over_from_a_killed_launcher_is_stopped() {
        let home = enterable_folder();
        let first = prepare(&home).await;
        let left_over = run(&first).await;
        let second = prepare(&home).await;
        assert_eq!(left_over.wait().await.unwrap().code(), Some(0));
        run(&second).await;
    }

    /// Of a shutdown with `kill`.
    #[tokio::test]
    async fn a_server_that_waits_for_its_sessions_is_shut_down() {
        let home = enterable_folder();
        let server = prepare(&home).await;
        let process = run(&server).await;
        let (_client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        let session = tokio::spawn(connection);
        server.hasten_shutdown();
        ask(&server, "SELECT 1").await;
        process.signal(Signal::TERM).unwrap();
        let ended = async {
            loop {
                server.hasten_shutdown();
                if timeout(Duration::from_millis(50), process.wait()).await.is_ok() {
                    break;
                }
            }
        };
        timeout(LONG, ended).await.unwrap();
        session.await.unwrap().unwrap_err();
    }

    #[tokio::test]
    async fn data_of_a_version_that_is_not_installed_is_refused_with_advice() {
        let home = enterable_folder();
        let folder = home.path().join("postgres");
        fs::create_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join("data/PG_VERSION"), "1000\n").unwrap();
        let programs = find_postgres().unwrap();
        let log = home.path().join("log");
        let refused = Postgres::prepare(&programs, &folder, &log, Durability::Durable).await.unwrap_err();
        assert!(refused.to_string().contains("install PostgreSQL 1000"), "{refused}");
    }

    #[test]
    fn only_throwaway_data_is_not_synced() {
        assert!(!settings(1, Durability::Durable).contains("fsync"));
        assert!(settings(1, Durability::Durable).contains("shared_buffers = 256MB"));
        assert!(settings(1, Durability::Throwaway).contains("fsync = off"));
    }
}
