//! The programs of the containers really start with the deployed configuration: a database without tables,
//! addresses without passwords, and password files.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use mesh_testbed::{Answer, Database, Service, http_client};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::manifests::text;

/// Time limit of a start on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);

/// A command for a program in the test's target folder, with these variables alone.
fn program(name: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(mesh_tests::program(name));
    command.env_clear().envs(variables.iter().copied()).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// An address without its password, a file with the password, and the password.
fn split_password(url: &str, folder: &Path) -> (String, PathBuf, String) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (user_part, host_part) = rest.rsplit_once('@').unwrap();
    let (user, password) = user_part.split_once(':').unwrap();
    let file = folder.join(user);
    std::fs::write(&file, format!("{password}\n")).unwrap();
    (format!("{scheme}://{user}@{host_part}"), file, password.to_owned())
}

/// Runs a command to its end; asserts that its output does not contain the password.
async fn run(mut command: Command, password: &str) -> (ExitStatus, String) {
    let run = timeout(START_LIMIT, command.output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    assert!(!printed.contains(password), "a password is shown");
    (run.status, printed)
}

/// Reads the node's log until it names its address.
async fn address(node: &mut Child) -> String {
    let mut lines = BufReader::new(node.stderr.take().unwrap()).lines();
    let read = async {
        let mut before = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let log_line: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(url) = log_line["fields"]["url"].as_str() {
                return url.to_owned();
            }
            before += &format!("{line}\n");
        }
        panic!("the node ended: {before}");
    };
    let url = timeout(START_LIMIT, read).await.unwrap();
    // Reads on, since a process whose output is not read blocks at a full pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    url
}

#[tokio::test]
async fn an_empty_database_is_migrated_and_a_service_becomes_ready() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::empty().await;
    let (url, file, password) = split_password(database.url(), folder.path());
    let file = file.to_str().unwrap();
    let of_database = [("MESH_DATABASE_URL", url.as_str()), ("MESH_DATABASE_PASSWORD_FILE", file)];

    // The node waits for the migration.
    let home = folder.path().join("home");
    let mut node = program("mesh", &of_database);
    node.args(["node", "--listen=127.0.0.1:0", "--demo-blocks=60", "--demo-parties=8"]);
    let mut node = node.arg("--home").arg(&home).stderr(Stdio::piped()).spawn().unwrap();

    let history = folder.path().join("history");
    let sealing = [("MESH_HISTORY_INTERVAL_BLOCKS", "1000"), ("MESH_HISTORY_URL", history.to_str().unwrap())];
    for _ in 0..2 {
        let mut migrate = program("mesh", &[of_database, sealing].concat());
        migrate.arg("migrate");
        let (status, printed) = run(migrate, &password).await;
        assert!(status.success(), "{printed}");
    }
    let mut wrong = program("mesh", &[("MESH_DATABASE_URL", url.as_str())]);
    wrong.arg("migrate");
    assert_eq!(run(wrong, &password).await.0.code(), Some(64), "without its password it is rejected");

    let rpc = address(&mut node).await;
    assert!(http_client().get(format!("{rpc}/health")).send().await.unwrap().status().is_success());

    // The service's own database user, which the migration granted its rights.
    let (url, file, query_password) = split_password(&database.url_of("query"), folder.path());
    assert!(url.contains("://query@"), "{url}");
    let query = Service::configure("query").env("MESH_DATABASE_URL", url);
    let query = query.env("MESH_DATABASE_PASSWORD_FILE", file.to_str().unwrap()).start().await;
    let admin = query.admin_url().trim_start_matches("http://").to_owned();
    let ready = async || {
        let mut ready = program("query", &[("MESH_ADMIN_LISTEN", admin.as_str())]);
        ready.arg("--ready");
        run(ready, &password).await
    };
    let (status, printed) = ready().await;
    assert!(status.success(), "{printed}");
    assert!(!query.log().contains(&query_password), "a password is shown");
    let page = http_client().get(format!("{}/metrics", query.admin_url()));
    is_read_by_autoscalers(Answer::to(page).await.text());
    query.kill().await;
    let (status, printed) = ready().await;
    assert!(!status.success() && printed.contains("does not answer"), "{printed}");

    assert!(terminate(&mut node).await.success());
}

/// KEDA parses the older Prometheus text format only, and stops at the first metric type that is not in it.
fn is_read_by_autoscalers(page: &str) {
    let scaled: Vec<Value> =
        serde_saphyr::from_multiple(&crate::manifests::read("k8s/components/export-keda/scaled-object.yaml"))
            .unwrap();
    let gauge = text(&scaled[0], "/spec/triggers/0/metadata/valueLocation");
    assert!(page.contains(&format!("# TYPE {gauge} gauge\n{gauge} ")), "{page}");
    for line in page.lines().filter(|line| line.starts_with('#')) {
        let kind = line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' ')).map(|(_, kind)| kind);
        let is_known = kind.is_none_or(|kind| ["counter", "gauge", "histogram"].contains(&kind));
        assert!(is_known && (kind.is_some() || line.starts_with("# HELP ")), "{line}");
    }
}

/// Stops a process with SIGTERM, as container runtimes do.
async fn terminate(process: &mut Child) -> ExitStatus {
    let pid = rustix::process::Pid::from_raw(process.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    timeout(START_LIMIT, process.wait()).await.unwrap().unwrap()
}
