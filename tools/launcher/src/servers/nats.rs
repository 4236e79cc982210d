//! A private nats-server: its folder, configuration, process specification and readiness probe.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

use mesh_bus::permissions;
use tokio::{
    io::AsyncReadExt,
    net::{TcpStream, ToSocketAddrs},
};

use super::{ServerError, files, poll_ready};
use crate::{
    bus::{Bus, BusCredentials},
    process::ProcessSpec,
};

/// The server's garbage collector runs when unused memory is four times the used: while it runs, all messages
/// wait. It runs more often near the limit.
const GARBAGE_PERCENT: &str = "400";
const MEMORY_LIMIT: &str = "512MiB";

/// The settings of a private nats-server.
#[derive(Debug, Clone)]
pub struct NatsSettings {
    /// First token of the subjects of the mesh that it serves; `*` for any mesh.
    pub prefix: String,
    /// The folder of its users' credentials; absent = one of its own. The servers of one bus share theirs.
    pub users: Option<PathBuf>,
    /// Its certificate and key; absent = without TLS.
    pub tls: Option<TlsFiles>,
    /// Further configuration in its own language, such as a `cluster` block.
    pub more: String,
}

impl NatsSettings {
    /// A server of its own for a mesh whose subjects begin with `prefix`.
    pub fn of(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), users: None, tls: None, more: String::new() }
    }
}

/// The certificate of a server and the way to trust it, files in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Its certificate, with those between it and the authority's.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The authority that clients trust.
    pub ca: PathBuf,
}

/// A private nats-server that was prepared and can be started. It accepts only the users of [`permissions`],
/// each with its own password.
#[derive(Debug, Clone)]
pub struct Nats {
    program: PathBuf,
    folder: PathBuf,
    log: PathBuf,
    port: u16,
    users: PathBuf,
    tls: Option<TlsFiles>,
}

impl Nats {
    /// Creates the folder of a nats-server, or reuses an existing one. Call it while the server is down: the
    /// stored port is replaced when another process listens on it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub async fn prepare(
        program: &Path,
        folder: &Path,
        log: &Path,
        settings: &NatsSettings,
    ) -> Result<Self, ServerError> {
        files::make_folder(folder)?;
        let folder = std::fs::canonicalize(folder).map_err(ServerError::file(folder))?;
        let port = files::persistent_port(&folder.join("port"))?;
        let users = settings.users.clone().unwrap_or_else(|| folder.join("users"));
        files::make_folder(&users)?;
        let mut passwords = HashMap::new();
        for user in permissions::users(&settings.prefix) {
            let password = files::persistent_credentials(&users.join(&user.name), &user.name)?;
            passwords.insert(user.name, password);
        }
        let tls = settings.tls.clone();
        let server = Self { program: program.to_owned(), folder, log: log.to_owned(), port, users, tls };
        let quoted = |user: &str| format!("{:?}", passwords.get(user).map_or("", String::as_str));
        let authorization = permissions::authorization(&settings.prefix, quoted);
        let config = format!("{}{authorization}{}", server.config(), settings.more);
        files::write_private(&server.config_file(), &config)?;
        Ok(server)
    }

    /// The process specification.
    pub fn spec(&self) -> ProcessSpec {
        let mut spec = ProcessSpec::new("nats-server", &self.program, &self.log)
            .arg("--config")
            .arg(self.config_file().display().to_string());
        spec.directory = Some(self.folder.clone());
        spec.grace = Duration::from_secs(5);
        // It shares the machine with its clients. On few cores, passing messages between its threads costs
        // more than parallelism gains.
        let spec = spec.env("GOGC", GARBAGE_PERCENT).env("GOMEMLIMIT", MEMORY_LIMIT);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        spec.env("GOMAXPROCS", (cores / 2).max(1).to_string())
    }

    /// Its address, `nats://127.0.0.1:<port>`, without the credentials.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its address and the credentials of its users.
    pub fn bus(&self) -> Bus {
        Bus {
            url: self.url(),
            credentials: Some(BusCredentials::Each(self.users.clone())),
            tls_ca: self.tls.as_ref().map(|tls| tls.ca.clone()),
        }
    }

    /// The folder with the credentials of its users: for each a file whose one line is `user:password`, which
    /// only its owner may read.
    pub fn users(&self) -> &Path {
        &self.users
    }

    /// Waits until the server greets a new connection.
    ///
    /// # Errors
    /// It has not done so in time.
    pub async fn ready(&self, within: Duration) -> Result<(), ServerError> {
        let probe =
            || async { nats_greeting(("127.0.0.1", self.port)).await.map_err(|error| error.to_string()) };
        poll_ready("nats-server", self.url(), within, probe).await
    }

    fn config_file(&self) -> PathBuf {
        self.folder.join("nats-server.conf")
    }

    fn config(&self) -> String {
        let pid_file = self.folder.join("nats-server.pid").display().to_string();
        let tls = self.tls.as_ref().map_or_else(String::new, |TlsFiles { certificate, key, .. }| {
            format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n")
        });
        format!(
            "# Rewritten at every start of the mesh.\n\
             listen: \"127.0.0.1:{port}\"\n\
             server_name: \"mesh-{port}\"\n\
             max_payload: 4MB\n\
             ping_interval: \"2s\"\n\
             pid_file: {pid_file:?}\n\
             {tls}",
            port = self.port,
        )
    }
}

/// Waits for the greeting with which a nats-server meets a new connection.
///
/// # Errors
/// Nothing listens there, or something else.
pub async fn nats_greeting(address: impl ToSocketAddrs) -> std::io::Result<()> {
    let mut connection = TcpStream::connect(address).await?;
    let mut greeting = [0; 5];
    connection.read_exact(&mut greeting).await?;
    match &greeting == b"INFO " {
        true => Ok(()),
        false => Err(std::io::Error::other("something else listens there")),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, os::unix::fs::PermissionsExt};

    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::{
        process::{Process, Signal},
        servers::{find_nats, start},
    };

    const LONG: Duration = Duration::from_secs(20);

    async fn conversation(nats: &Nats, connect: &str) -> String {
        let mut connection = TcpStream::connect(("127.0.0.1", nats.port)).await.unwrap();
        connection.write_all(format!("CONNECT {connect}\r\nPING\r\n").as_bytes()).await.unwrap();
        let mut received = String::new();
        let mut piece = [0; 4096];
        while !received.contains("PONG") && !received.contains("-ERR") {
            let read = connection.read(&mut piece).await.unwrap();
            assert!(read > 0, "closed after {received}");
            received += std::str::from_utf8(&piece[..read]).unwrap();
        }
        received
    }

    #[tokio::test]
    async fn a_private_server_asks_each_user_for_its_password_and_comes_back_on_its_port() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("nats");
        let log = home.path().join("logs/nats.log");
        let settings = NatsSettings::of("mesh");
        let nats = Nats::prepare(&find_nats().unwrap(), &folder, &log, &settings).await.unwrap();
        let process = start(&nats.spec(), || nats.ready(LONG)).await.unwrap();

        for connect in [r#"{"verbose":false}"#, r#"{"user":"edge"}"#, r#"{"user":"mesh","pass":"mesh"}"#] {
            let stranger = conversation(&nats, connect).await;
            assert!(stranger.contains("Authorization Violation"), "{stranger}");
            assert!(stranger.contains("\"max_payload\":4194304"), "{stranger}");
        }
        let mut passwords = HashSet::new();
        for user in permissions::users("mesh") {
            let file = nats.users.join(&user.name);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let line = std::fs::read_to_string(&file).unwrap();
            let (name, password) = line.trim().split_once(':').unwrap();
            assert_eq!(name, user.name);
            assert!(passwords.insert(password.to_owned()), "two users have one password");
            let as_user = |name| format!("{{\"user\":\"{name}\",\"pass\":\"{password}\"}}");
            let friend = conversation(&nats, &as_user(name)).await;
            assert!(friend.contains("PONG"), "{friend}");
            let other = if name == "edge" { "query" } else { "edge" };
            let impostor = conversation(&nats, &as_user(other)).await;
            assert!(impostor.contains("Authorization Violation"), "{impostor}");
        }

        process.signal(Signal::KILL).unwrap();
        process.wait().await.unwrap();
        let credentials = std::fs::read_to_string(nats.users.join("query")).unwrap();
        let again = Nats::prepare(&find_nats().unwrap(), &folder, &log, &settings).await.unwrap();
        assert_eq!(again.url(), nats.url());
        assert_eq!(std::fs::read_to_string(again.users.join("query")).unwrap(), credentials);
        let process = start(&again.spec(), || again.ready(LONG)).await.unwrap();
        process.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_server_that_cannot_start_says_why_and_a_silent_one_is_not_ready() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("nats.log");
        let (program, folder) = (find_nats().unwrap(), home.path().join("nats"));
        let nats = Nats::prepare(&program, &folder, &log, &NatsSettings::of("mesh")).await.unwrap();
        let late = nats.ready(Duration::from_millis(50)).await.unwrap_err();
        assert!(late.to_string().contains("not ready"), "{late}");

        std::fs::write(nats.config_file(), "no such option: [").unwrap();
        let ended = start(&nats.spec(), || nats.ready(LONG)).await.unwrap_err();
        assert!(matches!(&ended, ServerError::Ended { log_tail, .. } if !log_tail.is_empty()), "{ended}");
        let nothing = ProcessSpec::new("nats-server", "/nonexistent/nats-server", &log);
        let missing = Process::spawn(&nothing).unwrap_err();
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    }
}
