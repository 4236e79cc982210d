//! The programs of the mesh in their own folder, and a mesh that they run.

use std::{
    env,
    ffi::OsString,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use mesh_launcher::{control::Row, services::SERVICES};
use mesh_testbed::{enterable_folder, eventually, http_client, retry};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::CheckTransactionRequest;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::Outcome;

pub(crate) const START: Duration = Duration::from_secs(180);
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A folder with the programs of the mesh, as if they were installed, and a home.
pub(crate) struct Installed {
    pub(crate) folder: TempDir,
    umask: Option<&'static str>,
    /// The `PATH` of its programs instead of the test's.
    path: Option<OsString>,
}

impl Installed {
    pub(crate) fn new() -> Self {
        // When root runs this, the database belongs to another user, who must be able to enter the folder.
        let folder = enterable_folder();
        let mesh = Path::new(env!("CARGO_BIN_EXE_mesh"));
        // Copied by another program: with the files open for writing in this process, a child forked by
        // another test could inherit them, and running them would fail with ETXTBSY.
        let copied = std::process::Command::new("cp").arg(mesh).arg(folder.path()).status().unwrap();
        assert!(copied.success());
        for service in SERVICES {
            let built = mesh.with_file_name(service.name);
            assert!(built.exists(), "there is no {}: run `cargo build --workspace` first", built.display());
            symlink(built, folder.path().join(service.name)).unwrap();
        }
        Self { folder, umask: None, path: None }
    }

    /// The content of an archive. Its programs find no cargo.
    pub(crate) fn unpacked(archive: &Path) -> Self {
        let folder = enterable_folder();
        let mut tar = std::process::Command::new("tar");
        tar.arg("-xzf").arg(archive).arg("--strip-components=1").arg("-C").arg(folder.path());
        assert!(tar.status().unwrap().success());
        let path = env::var_os("PATH").unwrap();
        let without_cargo = env::split_paths(&path).filter(|folder| !folder.join("cargo").exists());
        let path = Some(env::join_paths(without_cargo).unwrap());
        Self { folder, umask: None, path }
    }

    /// Its programs get this umask.
    pub(crate) fn with_umask(umask: &'static str) -> Self {
        Self { umask: Some(umask), ..Self::new() }
    }

    pub(crate) fn mesh(&self, args: &[&str]) -> Command {
        let program = self.folder.path().join("mesh");
        let mut command = match self.umask {
            None => Command::new(program),
            Some(umask) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "umask \"$0\" && exec \"$@\"", umask]).arg(program);
                shell
            }
        };
        if let Some(path) = &self.path {
            command.env("PATH", path).current_dir("/");
        }
        command.args(args).arg("--home").arg(self.home());
        command
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) async fn up(&self) -> Up {
        self.up_with(&["--demo-blocks", "40"]).await
    }

    pub(crate) async fn up_with(&self, more: &[&str]) -> Up {
        let mut command = self.mesh(&["up", "--port", "0", "--grpc-port", "0"]);
        command.args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        timeout(START, out.read_line(&mut line)).await.unwrap().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            // It has ended; its last line says why.
            let output = child.wait_with_output().await.unwrap();
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(
            matches!(words[..], ["ready", http, grpc]
            if http.starts_with("http://127.0.0.1:") && grpc.starts_with("grpc://127.0.0.1:")),
            "{line:?}"
        );
        let grpc = words[2].strip_prefix("grpc://").unwrap().to_owned();
        Up { http: words[1].to_owned(), grpc, child, out }
    }

    /// Runs a command that has to succeed; returns standard output.
    pub(crate) async fn order(&self, args: &[&str]) -> String {
        Outcome::of(&mut self.mesh(args), b"").await.done().to_owned()
    }

    /// Asserts that the secrets of a running mesh are private under its umask, and that only its user may write to
    /// its folders.
    pub(crate) fn keeps_secrets(&self) {
        let (home, umask) = (self.home(), self.umask);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert!(!home.join("postgres").is_symlink(), "umask {umask:?}: the data has left the home");
        let files = |folder: &str| home.join(folder).read_dir().unwrap().map(|entry| entry.unwrap().path());
        let mut secrets: Vec<_> = files("postgres/users").chain(files("nats/users")).collect();
        assert!(secrets.len() > 8, "{secrets:?}");
        secrets
            .extend(["postgres/password", "nats/nats-server.conf", "mesh.json"].map(|file| home.join(file)));
        for secret in secrets {
            assert_eq!(mode(&secret), 0o600, "umask {umask:?}: {}", secret.display());
        }
        assert_eq!(mode(&home.join("run")), 0o700, "its control socket tells every secret");
        for folder in ["", "postgres", "postgres/users", "nats", "nats/users", "logs"] {
            assert_eq!(mode(&home.join(folder)) & 0o022, 0, "umask {umask:?}: {folder}");
        }
    }

    /// The address of the development node, from its log.
    pub(crate) async fn node(&self) -> String {
        let log = tokio::fs::read_to_string(self.home().join("logs/devnode-0.log")).await.unwrap();
        let line = log.lines().find(|line| line.contains("the development node answers")).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["fields"]["url"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn rows(&self) -> Vec<Row> {
        serde_json::from_str(&self.order(&["ps", "--json"]).await).unwrap()
    }

    pub(crate) async fn pid(&self, service: &str) -> Option<u32> {
        self.rows().await.iter().find(|row| row.service == service).map(|row| row.pid)
    }

    pub(crate) async fn new_pid(&self, service: &str, old: u32) {
        let is_new = async || self.pid(service).await.is_some_and(|pid| pid != old);
        eventually(PATIENCE, &format!("{service} did not restart"), is_new).await;
    }

    /// Stops a mesh, which leaves no process behind; returns its standard error.
    pub(crate) async fn stop(&self, up: Up, signal: Signal) -> String {
        let rows = self.rows().await;
        let error = up.stop(signal).await;
        assert!(!rows.is_empty() && rows.iter().all(|row| !runs(row.pid)), "{rows:?}");
        error
    }
}

/// A mesh that runs.
pub(crate) struct Up {
    child: Child,
    out: BufReader<tokio::process::ChildStdout>,
    pub(crate) http: String,
    pub(crate) grpc: String,
}

impl Up {
    pub(crate) async fn status(&self) -> u16 {
        let answer = http_client().get(format!("{}/api/v2/network/limits", self.http)).send().await;
        answer.map_or(0, |answer| answer.status().as_u16())
    }

    pub(crate) async fn answers(&self) {
        eventually(PATIENCE, "the gateway does not answer", async || self.status().await == 200).await;
    }

    /// Sends a signal, waits for the end and returns standard error.
    pub(crate) async fn stop(self, signal: Signal) -> String {
        send(self.child.id().unwrap(), signal);
        self.ended().await
    }

    /// Waits for the end and returns standard error.
    pub(crate) async fn ended(mut self) -> String {
        let status = timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
        let (mut more, mut stderr) = (String::new(), String::new());
        self.out.read_to_string(&mut more).await.unwrap();
        assert_eq!(more, "", "one line on standard output");
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
        stderr
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

pub(crate) fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The hash of the transaction that `mesh tx sign` printed.
pub(crate) fn hash_of(signed: &[u8]) -> String {
    let request: CheckTransactionRequest = serde_json::from_slice(signed).unwrap();
    TxHash::of(&encode(&request.tx.unwrap())).to_string()
}

/// Gets a JSON answer, with retries until there is one.
pub(crate) async fn get_json(url: &str) -> serde_json::Value {
    retry(PATIENCE * 2, async || {
        let answer = http_client().get(url).send().await.and_then(reqwest::Response::error_for_status)?;
        answer.json().await
    })
    .await
}
