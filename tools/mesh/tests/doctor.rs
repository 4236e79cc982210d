//! `mesh doctor` in broken set-ups: it names the cause and what to do.

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::PathBuf, time::Duration};

use mesh_bus::Credentials;
use mesh_launcher::{
    Ready, ReplicaSpec, RestartRule,
    control::ControlSocket,
    home::Home,
    process::ProcessSpec,
    supervisor::{Group, Supervisor, Tier},
};
use mesh_testbed::{Database, DevNode, TlsFront, eventually, nats};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use crate::{Outcome, body, command, mesh, replying, says};

/// A home of its own, and the arguments of the doctor.
struct Case {
    folder: TempDir,
    home: PathBuf,
    args: Vec<String>,
    path: String,
}

impl Case {
    fn new() -> Self {
        Self::at_port("0")
    }

    fn at_port(port: &str) -> Self {
        let args = ["doctor", "--json", "--port", port, "--grpc-port", "0"].map(str::to_owned).to_vec();
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        Self { folder, home, args, path: std::env::var("PATH").unwrap() }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.args.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Runs a mesh in the home whose only service ends as soon as it starts. It has these variables.
    fn start(&self, service: &str, replicas: u32, variables: &[(&str, &str)]) -> Supervisor {
        let home = Home::at(&self.home).unwrap();
        home.create().unwrap();
        mesh_chassis::install_tls_provider();
        let pause = Duration::from_secs(600);
        let rule = RestartRule { first: pause, longest: pause, settled: pause };
        let supervisor = Supervisor::new(rule).unwrap();
        let mut spec = ProcessSpec::new(service, "/bin/false", home.log(service, 0));
        for (name, value) in variables {
            spec = spec.env(*name, *value);
        }
        let replica_spec = Box::new(move |_, _| ReplicaSpec { spec: spec.clone(), ready: Ready::Spawned });
        let group = Group { name: service.to_owned(), tier: Tier::Service, scalable: true, replica_spec };
        supervisor.add(group, replicas).unwrap();
        tokio::spawn(ControlSocket::bind(&home).unwrap().serve(supervisor.clone()));
        supervisor
    }

    /// Runs the doctor; returns its findings, and whether its exit code was 0.
    async fn diagnose(&self) -> (Vec<Value>, bool) {
        let mut command = command(&[]);
        command.args(&self.args).arg("--home").arg(&self.home).env("PATH", &self.path);
        let outcome = Outcome::of(&mut command, b"").await;
        assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
        (outcome.json().as_array().unwrap().clone(), outcome.code == Some(0))
    }

    /// Expects a check not to be fine, its finding to contain these words, and advice.
    async fn names(&self, check: &str, words: &[&str]) {
        let (findings, is_well) = self.diagnose().await;
        let found = findings.iter().find(|finding| finding["check"] == check && finding["state"] != "fine");
        let found = found.unwrap_or_else(|| panic!("nothing is wrong with {check}: {findings:#?}"));
        says(found["says"].as_str().unwrap(), words);
        assert!(!found["next"].as_str().unwrap().is_empty(), "{found}");
        assert_eq!(is_well, found["state"] != "wrong", "{findings:#?}");
    }
}

#[tokio::test]
async fn where_all_is_well_nothing_is_wrong() {
    let database = Database::fresh().await;
    let case = Case::new().with("--postgres", database.url()).with("--nats", &nats_url().await);
    let (findings, is_well) = case.diagnose().await;
    // Little space on the disk is a warning only.
    let wrong: Vec<_> = findings.iter().filter(|finding| finding["state"] == "wrong").collect();
    assert!(wrong.is_empty() && is_well, "{findings:#?}");
    for check in
        ["postgres", "nats-server", "home", "segments", "disk", "port", "database", "schema", "bus", "clock"]
    {
        assert!(findings.iter().any(|finding| finding["check"] == check), "{check}: {findings:#?}");
    }
}

/// The bus of the tests with a user's password in the address.
async fn nats_url() -> String {
    let config = nats().await.config("operator", "mesh");
    let Some(Credentials::Password { user, password }) = config.credentials else { panic!("no password") };
    config.url.replacen("://", &format!("://{user}:{password}@"), 1)
}

#[tokio::test]
async fn a_taken_port_is_named_with_who_has_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let pid = std::process::id().to_string();
    Case::at_port(&port).names("port", &[&port, "taken", &pid]).await;

    // Without options the ports are those of the home's last start. What has one now may be another mesh.
    let mut case = Case::new();
    case.args = ["doctor", "--json"].map(str::to_owned).to_vec();
    fs::create_dir(&case.home).unwrap();
    let ports = format!(
        r#"{{"host":"127.0.0.1","port":{port},"grpc_port":0,"http":"127.0.0.1:{port}","grpc":"127.0.0.1:1"}}"#
    );
    let saved = format!(r#"{{"database":null,"data":null,"complete":false,"ports":{ports}}}"#);
    fs::write(case.home.join("mesh.json"), saved).unwrap();
    case.names("port", &[&port, "taken", &pid]).await;
    let (findings, _) = case.diagnose().await;
    let found: Vec<_> = findings.iter().filter(|finding| finding["check"] == "port").collect();
    let next = found[0]["next"].as_str().unwrap();
    assert!(next.starts_with("start this mesh on another port") && found[1]["state"] == "fine", "{found:?}");
}

#[tokio::test]
async fn a_node_without_an_index_of_transactions_is_named() {
    let status = r#"{"jsonrpc":"2.0","id":-1,"result":{"node_info":{"network":"c","other":{"tx_index":"off","rpc_address":""}},
        "sync_info":{"latest_block_height":"7","catching_up":false}}}"#;
    let node = replying(vec![body(200, status), body(200, status)]).await;
    let case = Case::new().with("--node", &node.url);
    case.names("node", &["block 7", "transaction indexing is off"]).await;
    assert!(case.diagnose().await.1, "submissions work");
}

#[tokio::test]
async fn a_hosted_node_is_checked_over_tls_with_its_password() {
    let (node, certificates, case) = (DevNode::start().await, tempfile::tempdir().unwrap(), Case::new());
    node.block().await;
    let front = TlsFront::start(&node.url(), certificates.path()).await;
    let mut doctor = command(&["doctor", "--json", "--port", "0", "--grpc-port", "0", "--node"]);
    doctor.arg(format!("https://reader:canary@{}", front.address)).arg("--home").arg(&case.home);
    let outcome = Outcome::of(doctor.env("SSL_CERT_FILE", &front.ca), b"").await;
    says(outcome.done(), &["at block ", "the clocks of the node and of this machine agree"]);
    says(&front.received(), &["GET /status ", "Basic cmVhZGVyOmNhbmFyeQ=="]);
    assert!(!outcome.text().contains("canary"), "{outcome:?}");
}

#[tokio::test]
async fn an_old_nats_server_is_named() {
    let mut case = Case::new();
    let program = case.folder.path().join("nats-server");
    // Written by a shell: with the file open in this process, a child forked by another test could inherit
    // it, and running it would fail with ETXTBSY.
    let write = "printf '#!/bin/sh\\necho nats-server: v2.1.9\\n' > \"$1\" && chmod 755 \"$1\"";
    let written = Command::new("/bin/sh").args(["-c", write, "sh"]).arg(&program).status().await.unwrap();
    assert!(written.success());
    case.path = format!("{}:{}", case.folder.path().display(), case.path);
    case.names("nats-server", &["2.1.9", "too old"]).await;
}

#[tokio::test]
async fn a_segment_folder_that_cannot_be_written_is_named() {
    let case = Case::new();
    fs::create_dir(&case.home).unwrap();
    // A folder in which even root cannot write.
    symlink("/proc", case.home.join("segments")).unwrap();
    case.names("segments", &["segments cannot be written"]).await;
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_named() {
    let (database, empty) = (Database::fresh().await, Database::empty().await);
    let (before, after) = database.url().rsplit_once('@').unwrap();
    let (user, _) = before.rsplit_once(':').unwrap();
    let bus = nats().await.url().replacen("://", "://operator:wrong@", 1);
    let node = replying(vec![body(401, "{}")]).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = |scheme: &str| format!("{scheme}://127.0.0.1:{port}");
    let separator = if database.url().contains('?') { '&' } else { '?' };
    let hidden = format!("{}{separator}options=-csearch_path%3Dnowhere", database.url());
    // A chain from the future.
    let insert = "INSERT INTO blocks (block_time, height, hash) VALUES (now() + interval '1 hour', 1, 'ab')";
    database.connect().await.batch_execute(insert).await.unwrap();
    for (option, url, check, words) in [
        ("--postgres", format!("{user}:wrong@{after}"), "database", &["credentials rejected"][..]),
        ("--nats", bus, "bus", &["credentials rejected"]),
        ("--node", node.url.clone(), "node", &["credentials rejected", "401"]),
        ("--postgres", nowhere("postgres"), "database", &["reached", "refused"]),
        ("--nats", nowhere("nats"), "bus", &["reached"]),
        ("--node", nowhere("http"), "node", &["unreachable", "refused"]),
        ("--postgres", empty.url().to_owned(), "schema", &["migrations are missing"]),
        ("--postgres", hidden, "schema", &["the tables would be made nowhere"]),
        ("--postgres", database.url().to_owned(), "clock", &["newest block", "in the future"]),
    ] {
        Case::new().with(option, &url).names(check, words).await;
    }
}

#[tokio::test]
async fn a_pooler_that_rejects_the_settings_of_sessions_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://mesh@{}/mesh?sslmode=disable", listener.local_addr().unwrap());
    let pooler = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        // The length counts itself.
        let length = client.read_u32().await.unwrap();
        client.read_exact(&mut vec![0; usize::try_from(length).unwrap() - 4]).await.unwrap();
        let fields = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        client.write_all(&[&b"E"[..], &length, fields].concat()).await.unwrap();
    });
    Case::new().with("--postgres", &url).names("database", &["pooler", "startup parameter"]).await;
    pooler.await.unwrap();
}

#[tokio::test]
async fn a_stale_home_is_named() {
    let spoilt = Case::new();
    fs::create_dir(&spoilt.home).unwrap();
    fs::write(spoilt.home.join("mesh.json"), "{").unwrap();
    spoilt.names("home", &["mesh.json", "move this file away", "the data stays"]).await;

    // A home with data of a PostgreSQL.
    let with_data = || {
        let case = Case::new();
        let data = case.home.join("postgres/data");
        fs::create_dir_all(&data).unwrap();
        (case, fs::canonicalize(data).unwrap())
    };
    let (old, data) = with_data();
    fs::write(data.join("PG_VERSION"), "9\n").unwrap();
    old.names("home", &["PostgreSQL 9"]).await;

    let (killed, data) = with_data();
    // A process with the data's folder in its command line counts as its server.
    let mut left = Command::new("sleep").arg("600").arg0(&data).kill_on_drop(true).spawn().unwrap();
    let pid = left.id().unwrap().to_string();
    fs::write(data.join("postmaster.pid"), format!("{pid}\n")).unwrap();
    killed.names("home", &["stale", &pid]).await;
    left.kill().await.unwrap();
}

#[tokio::test]
async fn a_process_that_waits_for_its_restart_is_shown() {
    let case = Case::new();
    let supervisor = case.start("query", 2, &[]);
    let list = ["ps", "--home", case.home.to_str().unwrap()];
    let table = "SERVICE  REPLICA  PID  ADMIN\n\
        query          0    -  ended, waits for restart 1\n\
        query          1    -  ended, waits for restart 1\n";
    let is_shown = async || mesh(&list).await.text() == table;
    eventually(Duration::from_secs(15), "they are not listed", is_shown).await;
    let json = mesh(&[&list[..], &["--json"]].concat()).await;
    assert_eq!(json.done(), "[]\n", "processes only");
    case.names("service", &["query-0", "waits for restart 1"]).await;
    supervisor.shutdown().await;
}

#[tokio::test]
async fn a_damaged_segment_of_the_running_mesh_is_named() {
    let (database, case) = (Database::fresh().await, Case::new());
    let history = "INSERT INTO chain (id) VALUES ('test-1');
        INSERT INTO blocks (height, block_time, hash)
            SELECT height, timestamptz '2024-01-01 00:00:00+00' + height * interval '1 s', 'ab'
            FROM generate_series(1, 20) AS height";
    database.connect().await.batch_execute(history).await.unwrap();
    let root = case.home.to_str().unwrap();
    mesh(&["seal", "--postgres", database.url(), "--history", root, "--interval", "10"]).await.done();
    let variables = [("MESH_DATABASE_URL", database.url()), ("MESH_HISTORY_URL", root)];
    let supervisor = case.start("export", 1, &variables);
    let (findings, _) = case.diagnose().await;
    let found = findings.iter().find(|finding| finding["check"] == "history").unwrap();
    assert_eq!(found["state"], "fine", "{findings:#?}");
    let segment = case.home.join("segments/test-1-1-1-10.zip");
    fs::remove_file(&segment).unwrap();
    fs::write(&segment, "damaged").unwrap();
    case.names("history", &["test-1-1-1-10.zip cannot be read"]).await;
    supervisor.shutdown().await;
}
