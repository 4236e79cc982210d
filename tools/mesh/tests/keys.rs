//! A gateway that needs a key, from the command line.

use std::fs::File;

use futures_util::future::join_all;
use mesh_testbed::{Database, Mesh, keep_secret};

use crate::command::{Outcome, command, mesh};

#[tokio::test]
async fn a_gateway_that_needs_a_key_answers_those_who_name_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.jsonl");
    let added = mesh(&["keys", "add", "bot", "--file", file.to_str().unwrap()]).await;
    let key = added.done().trim();
    keep_secret(key);
    let database = Database::fresh().await;
    let setup = Mesh::configure(&database).env("MESH_EDGE_KEYS_FILE", file.to_string_lossy());
    let gateway = setup.env("MESH_EDGE_ANONYMOUS", "off").start().await;
    let url = gateway.url();
    for read in [&["get", "/accounts"][..], &["watch", "/accounts", "--count", "1"]] {
        let args = [read, &["--url", &url]].concat();
        mesh(&args).await.fails(1, &["a key is needed", "MESH_API_KEY"]);
        Outcome::of(command(&args).env("MESH_API_KEY", key), b"").await.done();
        Outcome::of(command(&args).args(["--api-key", key]), b"").await.done();
    }
    let export = ["export", "trades", "--from-block", "1", "--to-block", "last", "--url", &url];
    let refused = mesh(&export).await;
    refused.fails(1, &["a key is needed", "MESH_API_KEY"]);
    assert!(refused.error.trim_end().ends_with("--api-key"), "{refused:?}");
}

#[tokio::test]
async fn keys_that_are_added_at_the_same_time_are_all_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.jsonl");
    let adding = (0..8).map(async |number| {
        mesh(&["keys", "add", &format!("bot-{number}"), "--file", file.to_str().unwrap()]).await.done();
    });
    join_all(adding).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 8);
}

#[tokio::test]
async fn a_key_that_is_not_shown_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.jsonl");
    let mut adding = command(&["keys", "add", "bot", "--file", file.to_str().unwrap()]);
    let status = adding.stdout(File::create("/dev/full").unwrap()).status().await.unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!file.exists());
}
