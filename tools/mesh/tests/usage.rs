//! Usage errors of the command line: exit codes, and one sentence that says what to do next.

use std::process::{Command, Output};

fn mesh(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mesh")).args(args).output().unwrap()
}

#[track_caller]
fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let output = mesh(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{args:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
}

#[test]
fn wrong_usage_is_one_sentence_and_code_2() {
    fails(&[], 2, &["mesh up`"]);
    fails(&["fly"], 2, &["fly", "--help"]);
    fails(&["up", "--port", "http"], 2, &["--port", "http"]);
    fails(&["up", "--replicas", "nobody=2"], 2, &["nobody", "query"]);
    fails(&["up", "--env", "NAME"], 2, &["NAME=VALUE"]);
    fails(&["restart"], 2, &["SERVICE"]);
    fails(&["stop", "query=first"], 2, &["REPLICA"]);
    fails(&["load", "folder"], 2, &["--postgres"]);
    fails(&["history"], 2, &["--help"]);
    fails(&["history", "import", "folder"], 2, &["--postgres"]);
    fails(&["seal", "--interval", "0"], 2, &["--interval"]);
    let export = |table, from| ["export", table, "--from-block", from, "--to-block", "9"];
    fails(&export("trade", "1"), 2, &["trade", "nearest is trades", "balances", "withdrawals"]);
    fails(&export("TABLE_UNSPECIFIED", "1"), 2, &["TABLE_UNSPECIFIED", "market_data"]);
    fails(&export("trades", "-1"), 2, &["--from-block"]);
    fails(&export("trades", "x"), 2, &["--from-block", "first"]);
    fails(&["export", "trades", "--from-block", "1"], 2, &["--to-block"]);
    fails(
        &["export", "trades", "--from-block", "1", "--to-block", "2", "--url", "h"],
        2,
        &["--url", "http://"],
    );
    fails(&["up", "--node", "node:26657"], 2, &["--node", "http://host:port"]);
    fails(&["up", "--consensus", "raft"], 2, &["raft", "cometbft"]);
    fails(&["up", "--consensus", "cometbft", "--node", "http://node:26657"], 2, &["--consensus", "--node"]);
    fails(&["tx"], 2, &["--help"]);
    fails(&["tx", "sign", "--key", "k"], 2, &["--input", "--hex", "--base64"]);
    fails(&["tx", "sign", "--key", "k", "--hex", "00", "--difficulty", "257"], 2, &["--difficulty"]);
    fails(&["tx", "submit", "--type", "TYPE_FOO"], 2, &["TYPE_FOO"]);
    fails(&["tx", "status", "AB"], 2, &["64 hex digits"]);
}

#[test]
fn help_and_version_are_no_failures() {
    let help = mesh(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success());
    for command in [
        "up", "ps", "stop", "start", "restart", "scale", "load", "seal", "history", "export", "tx", "bench",
        "rig", "test",
    ] {
        assert!(text.contains(&format!("\n  {command} ")), "{text}");
    }
    assert!(!text.contains("devnode") && !text.contains("baseline"), "{text}");
    assert!(mesh(&["--version"]).status.success());
}

#[test]
fn without_a_running_mesh_ps_shows_nothing_and_orders_fail() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("none");
    let home = home.to_str().unwrap();
    let listed = mesh(&["ps", "--json", "--home", home]);
    assert!(listed.status.success());
    assert_eq!(listed.stdout, b"[]\n");
    assert!(String::from_utf8(listed.stderr).unwrap().contains("no mesh runs"));
    for order in [["stop", "query"], ["start", "query=0"], ["restart", "edge"], ["scale", "query=2"]] {
        fails(&[order[0], order[1], "--home", home], 1, &["no mesh runs", "mesh up"]);
    }
}

#[test]
fn servers_that_do_not_answer_are_missing_and_unreadable_addresses_wrong() {
    fails(&["load", "/nonexistent", "--postgres", "postgres://127.0.0.1:1/mesh"], 69, &["--postgres"]);
    fails(&["load", "/nonexistent", "--postgres", "database"], 64, &["postgres://"]);
}

#[test]
fn sealing_needs_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("none");
    fails(&["seal", "--home", home.to_str().unwrap()], 1, &["no database", "mesh up", "--postgres"]);
    assert!(!home.exists());
    fails(&["seal", "--postgres", "postgres://127.0.0.1:1/mesh"], 69, &["--postgres"]);
}

#[test]
fn a_taken_port_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let home = folder.path().to_str().unwrap();
    fails(&["up", "--home", home, "--port", &port, "--grpc-port", "0"], 1, &[&port, "--port"]);
}

#[test]
fn every_shell_gets_its_completions() {
    for (shell, sign) in [("bash", "complete -F"), ("zsh", "#compdef mesh"), ("fish", "complete -c mesh")] {
        let output = mesh(&["completions", shell]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(sign), "{shell}: {text}");
        assert!(text.contains("doctor") && text.contains("from-block"), "{shell}");
    }
}
