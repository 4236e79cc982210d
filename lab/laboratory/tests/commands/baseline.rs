//! The baseline processes that `mesh bench` compares the product with, started as it starts them.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use mesh_launcher::{
    process::{Process, ProcessSpec},
    services::Sockets,
};
use mesh_testbed::{Database, http_client};
use serde_json::Value;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(30);

const WITHDRAWAL: &str =
    "INSERT INTO withdrawals VALUES (repeat('ab', 32), repeat('cd', 32), 12, repeat('ef', 32),
    'STATUS_OPEN', 'ref', '0x01', now(), now(), '{}', repeat('01', 32), now())";

/// Starts a baseline with an inherited listening socket and these variables; returns the process and its URL.
fn start(kind: &str, folder: &tempfile::TempDir, variables: &[(&str, &str)]) -> (Process, String) {
    let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, 0).unwrap();
    let mut spec = ProcessSpec::new(kind, env!("CARGO_BIN_EXE_laboratory"), folder.path().join(kind))
        .arg("baseline")
        .arg(kind);
    for (name, value) in variables {
        spec = spec.env(*name, *value);
    }
    spec.sockets = sockets.inherited;
    (Process::spawn(&spec).unwrap(), format!("http://{}", sockets.http))
}

/// Repeats the request until the baseline is connected to its database.
async fn connected(url: &str) -> reqwest::Response {
    loop {
        let answer = http_client().get(url).send().await.unwrap();
        if answer.status() != 503 {
            return answer;
        }
    }
}

#[tokio::test]
async fn the_handler_without_the_bus_answers_a_row_of_the_store() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    database.connect().await.execute(WITHDRAWAL, &[]).await.unwrap();
    for kind in ["direct", "direct-threads"] {
        let (_process, address) = start(kind, &folder, &[("MESH_DATABASE_URL", database.url())]);
        let url = format!("{address}/api/v2/withdrawal/{}", "ab".repeat(32));
        let answer = timeout(TIMEOUT, connected(&url)).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/json");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["withdrawal"]["id"], "ab".repeat(32), "{kind}");
        assert_eq!(body["withdrawal"]["amount"], "12", "{kind}");
    }
}

#[tokio::test]
async fn hello_answers_and_its_answer_is_repeated_to_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let (_hello, hello) = start("hello", &folder, &[]);
    let hello = format!("{hello}/hello");
    let (_repeated, repeated) = start("repeated", &folder, &[("MESH_REPEATED_URL", &hello)]);
    let repeated = format!("{repeated}/api/v2/anything");
    for url in [&hello, &repeated] {
        let answer = http_client().get(url).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8", "{url}");
        assert_eq!(answer.text().await.unwrap(), "Hello, World!", "{url}");
    }
}
