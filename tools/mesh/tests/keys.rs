//! A gateway that needs a key, from the command line.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::Path,
    process::Stdio,
};

use futures_util::future::join_all;
use mesh_launcher::home::Home;
use mesh_testbed::{Database, Mesh, enterable_folder, keep_secret};
use serde_json::{Value, json};
use tokio::process::Command;

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
async fn keys_are_added_and_removed_and_the_files_permissions_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("keys.jsonl"), folder.path().join("link.jsonl"));
    let keys = async |words: &[&str], file: &Path| {
        mesh(&[&["keys"], words, &["--file", file.to_str().unwrap()]].concat()).await
    };
    let mode = || fs::metadata(&file).unwrap().mode() & 0o777;
    keys(&["add", "one"], &file).await.done();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    keys(&["add", "two", "--rate", "5"], &file).await.done();
    keys(&["add", "two"], &file).await.fails(1, &["a key of this name already"]);
    keys(&["remove", "one"], &file).await.done();
    keys(&["remove", "one"], &file).await.fails(1, &["no key of this name"]);
    symlink("keys.jsonl", &link).unwrap();
    keys(&["add", "three"], &link).await.done();
    assert_eq!((mode(), link.is_symlink()), (0o640, true));
    let left = keys(&["list", "--json"], &file).await.json();
    let left: Vec<_> = left.as_array().unwrap().iter().map(|key| (&key["name"], &key["ratePerS"])).collect();
    assert_eq!(left, [(&json!("two"), &json!(5)), (&json!("three"), &Value::Null)]);
    for refused in [Path::new("/dev/full"), folder.path()] {
        keys(&["add", "one"], refused).await.fails(1, &["regular file"]);
    }
}

#[tokio::test]
async fn keys_that_are_added_at_the_same_time_are_all_in_the_file_in_the_home_of_a_running_mesh() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    home.create().unwrap();
    let _running = home.lock().unwrap();
    let file = folder.path().join("keys.jsonl");
    let adding = (0..8).map(async |number| {
        mesh(&["keys", "add", &format!("bot-{number}"), "--file", file.to_str().unwrap()]).await.done();
    });
    join_all(adding).await;
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 8);
}

#[tokio::test]
async fn a_key_that_is_not_shown_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.jsonl");
    let closed = std::io::pipe().unwrap().1;
    for output in [Stdio::from(File::create("/dev/full").unwrap()), Stdio::from(closed)] {
        let mut adding = command(&["keys", "add", "bot", "--file", file.to_str().unwrap()]);
        assert_eq!(adding.stdout(output).status().await.unwrap().code(), Some(1));
        assert!(!file.exists());
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_added_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.jsonl");
    // No file can get a byte, as on a full disk.
    let mut adding = Command::new("/bin/sh");
    adding.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_mesh")]);
    adding.args(["keys", "add", "bot", "--file", file.to_str().unwrap()]);
    let refused = Outcome::of(&mut adding, b"").await;
    refused.fails(1, &["cannot write"]);
    assert_eq!((refused.text(), file.exists()), ("", false));
}

#[tokio::test]
async fn a_file_of_keys_whose_owner_cannot_stay_the_same_is_not_replaced() {
    const STRANGER: u32 = 65_534;
    let folder = enterable_folder();
    let file = folder.path().join("keys.jsonl");
    let path = file.to_str().unwrap();
    mesh(&["keys", "add", "bot", "--file", path]).await.done();
    if chown(&file, Some(1000), Some(1000)).is_err() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let text = fs::read(&file).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let mut removing = command(&["keys", "remove", "bot", "--file", path]);
    Outcome::of(removing.uid(STRANGER), b"").await.fails(1, &["cannot write", "Operation not permitted"]);
    assert_eq!((fs::metadata(&file).unwrap().uid(), fs::read(&file).unwrap()), (1000, text));
    mesh(&["keys", "remove", "bot", "--file", path]).await.done();
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.uid(), after.gid(), after.mode() & 0o777, after.len()), (1000, 1000, 0o644, 0));
}
