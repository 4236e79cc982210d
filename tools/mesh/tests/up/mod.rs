//! A whole mesh on this machine from the command line: the ready line, `ps`, stop and start, the end.

mod dist;
pub(crate) mod installed;

use std::{path::Path, process::Stdio};

use installed::{Installed, PATIENCE, START, Up, get_json, hash_of, runs, send};
use jiff::Timestamp;
use mesh_devnode::{Base, ChainFile};
use mesh_launcher::{control::Row, services::SERVICES};
use mesh_testbed::{NodeKind, eventually, retry};
use mesh_transaction::SpamRules;
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};

use crate::command::{Outcome, command, mesh, says};

/// Signs a transaction with the gateway's chain and block, submits it there, and follows it into a block.
async fn submits(up: &Up, node: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (key, file) = (folder.path().join("key"), folder.path().join("tx.json"));
    let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
    mesh(&["tx", "keygen", key]).await.done();
    get_json(&format!("{}/blockchain/height", up.http)).await;
    let body = mesh(&["tx", "sign", "--key", key, "--hex", "00", "--url", &up.http]).await;
    std::fs::write(file, body.done()).unwrap();
    mesh(&["tx", "submit", "--wait", file, "--url", &up.http]).await.done();
    let hash = hash_of(&body.bytes);
    let fate = mesh(&["tx", "status", &hash, "--json", "--url", &up.http]).await.json();
    assert_eq!((&fate["txHash"], &fate["status"]), (&hash.as_str().into(), &"INCLUDED".into()), "{fate}");

    // Block and hash are those of the store.
    let head = get_json(&format!("{}/blockchain/height", up.http)).await;
    let (height, hash) = (head["height"].as_str().unwrap(), head["hash"].as_str().unwrap());
    let seen = retry(PATIENCE, async || {
        let block = get_json(&format!("{node}/block?height={height}")).await;
        block["result"]["block_id"]["hash"].as_str().map(str::to_lowercase).ok_or(block)
    });
    assert_eq!(seen.await, hash);
}

/// Expects the processes of all services with their admin ports, the servers and the development node.
fn all_run(rows: &[Row]) {
    let mut names: Vec<&str> = rows.iter().map(|row| row.service.as_str()).collect();
    names.sort_unstable();
    let mut expected: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
    expected.extend(["devnode", "nats-server", "postgres"]);
    expected.sort_unstable();
    assert_eq!(names, expected);
    for row in rows {
        let is_service = SERVICES.iter().any(|service| service.name == row.service);
        assert_eq!(row.admin.is_some(), is_service, "{row:?}");
    }
}

#[tokio::test]
async fn a_mesh_comes_up_survives_its_drills_and_leaves_nothing_behind() {
    let installed = Installed::with_umask("077");
    let up = installed.up().await;
    assert_eq!(up.status().await, 200);
    installed.keeps_secrets();

    all_run(&installed.rows().await);
    let node = installed.node().await;
    submits(&up, &node).await;
    // The doctor checks the ports of this mesh; the default ones may belong to another mesh.
    let ports = up.http.strip_prefix("http://").unwrap();
    let doctor = installed.order(&["doctor"]).await;
    says(&doctor, &[&format!("{ports} is served"), &format!("{} is served", up.grpc)]);

    for service in ["query", "nats-server", "postgres", "devnode"] {
        let old = installed.pid(service).await.unwrap();
        send(old, Signal::KILL);
        installed.new_pid(service, old).await;
    }
    up.answers().await;
    submits(&up, &node).await;

    installed.order(&["stop", "export"]).await;
    let outcome = Outcome::of(&mut installed.mesh(&["doctor"]), b"").await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    says(
        outcome.text(),
        &["export has no running replica", "mesh start export` if it was stopped", "scaled to 0"],
    );
    installed.order(&["start", "export"]).await;

    installed.order(&["stop", "postgres"]).await;
    assert_eq!(installed.pid("postgres").await, None);
    installed.order(&["start", "postgres"]).await;
    assert!(installed.pid("postgres").await.is_some());
    up.answers().await;

    let old = installed.pid("edge").await.unwrap();
    installed.order(&["restart", "edge"]).await;
    assert_ne!(installed.pid("edge").await, Some(old));
    installed.order(&["scale", "query=2"]).await;
    assert_eq!(installed.rows().await.iter().filter(|row| row.service == "query").count(), 2);
    up.answers().await;

    // Complete segments were sealed before the mesh was ready.
    assert_eq!(installed.order(&["seal"]).await, "nothing to seal\n");
    says(&installed.stop(up, Signal::INT).await, &["writing the demo network: 40 of 40 blocks"]);
    assert_eq!(installed.rows().await, []);

    // Without a running mesh, the command starts the home's database.
    let segments = || installed.home().join("segments").read_dir().map_or(0, Iterator::count);
    let complete = segments();
    let sealed = installed.order(&["seal", "--newest"]).await;
    assert!(sealed.starts_with("sealed ") && sealed.lines().count() == 1, "{sealed}");
    assert_eq!(segments(), complete + 1);
    assert!(!installed.home().join("postgres/data/postmaster.pid").exists());

    // A damaged segment is named, and the rest is served.
    let damaged = installed.home().join("segments").read_dir().unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&damaged).unwrap();
    std::fs::write(&damaged, "").unwrap();
    let again = installed.up_with(&["--replicas", "edge=0", "--demo-blocks", "41"]).await;
    installed.order(&["scale", "edge=1"]).await;
    assert_eq!(again.status().await, 200);
    let stderr = installed.stop(again, Signal::TERM).await;
    let unreadable = format!("{} cannot be read", damaged.file_name().unwrap().display());
    says(
        &stderr,
        &["keeping the demo network", "not whole", &unreadable, "edge has no replicas", "mesh scale edge=1"],
    );
    assert!(!stderr.contains("writing"), "{stderr}");
}

#[tokio::test]
async fn a_stop_during_the_start_is_heeded_too() {
    let installed = Installed::new();
    let mut command = installed.mesh(&["up", "--port", "0", "--grpc-port", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    eventually(START, "nothing was started", async || installed.pid("nats-server").await.is_some()).await;
    let rows = installed.rows().await;
    send(child.id().unwrap(), Signal::TERM);
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(rows.iter().all(|row| !runs(row.pid)));
}

#[tokio::test]
async fn a_start_that_waits_for_a_service_prints_why() {
    let installed = Installed::new();
    let mut command =
        installed.mesh(&["up", "--port", "0", "--grpc-port", "0", "--node", "http://127.0.0.1:1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("waiting for ") {
                return line;
            }
        }
        panic!("it ended");
    };
    let line = timeout(START, waits).await.unwrap();
    assert!(line.contains(": the consensus node does not answer; see its log"), "{line}");
    send(child.id().unwrap(), Signal::TERM);
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));
}

/// The address of CometBFT, from its log.
fn cometbft(home: &Path) -> String {
    let log = std::fs::read_to_string(home.join("logs/cometbft-0.log")).unwrap();
    let line = log.lines().rfind(|line| line.contains("rpc_address")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["nodeInfo"]["other"]["rpc_address"].as_str().unwrap().replace("tcp://", "http://")
}

/// The height of the newest block that a node has decided.
async fn decided(node: &str) -> u64 {
    let status = get_json(&format!("{node}/status")).await;
    status["result"]["sync_info"]["latest_block_height"].as_str().unwrap().parse().unwrap()
}

/// Waits until a node has decided a block above a height.
async fn decided_after(node: &str, height: u64) {
    eventually(PATIENCE, &format!("there is no block after {height}"), async || decided(node).await > height)
        .await;
}

/// The database of a running mesh, by the variables of the process that writes its blocks.
fn database(writer: u32) -> String {
    let variables = std::fs::read_to_string(format!("/proc/{writer}/environ")).unwrap();
    let url = variables.split('\0').find_map(|variable| variable.strip_prefix("MESH_DATABASE_URL="));
    url.unwrap().to_owned()
}

/// Compares every block of the store since the node's first with the node's, and returns the newest height.
async fn same_blocks(database: &str, node: &str) -> i64 {
    let client = mesh_testbed::connect(database).await;
    let sql =
        "SELECT height, hash, (extract(epoch FROM block_time) * 1000000)::int8 FROM blocks ORDER BY height";
    let rows = client.query(sql, &[]).await.unwrap();
    let mut newest = 0;
    for row in &rows {
        let (height, hash, time): (i64, String, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(height, newest + 1, "the store has no gaps");
        newest = height;
        if height <= 40 {
            continue;
        }
        let block = get_json(&format!("{node}/block?height={height}")).await["result"].take();
        assert_eq!(block["block_id"]["hash"].as_str().unwrap().to_lowercase(), hash, "block {height}");
        let decided: Timestamp = block["block"]["header"]["time"].as_str().unwrap().parse().unwrap();
        assert_eq!(decided.as_microsecond(), time, "block {height}");
    }
    newest
}

#[tokio::test]
async fn a_mesh_with_a_real_cometbft_survives_its_drills_and_goes_on_where_it_was() {
    if NodeKind::cometbft().is_none() {
        return;
    }
    let installed = Installed::new();
    let up = installed.up_with(&["--demo-blocks", "40", "--consensus", "cometbft"]).await;
    let rows = installed.rows().await;
    let runs_here = |name: &str| rows.iter().any(|row| row.service == name && row.admin.is_none());
    assert!(runs_here("cometbft") && runs_here("application") && !runs_here("devnode"), "{rows:?}");
    let node = cometbft(&installed.home());
    submits(&up, &node).await;

    for killed in [&["cometbft"][..], &["application"], &["application", "cometbft"]] {
        let mut old = Vec::new();
        for name in ["application", "cometbft"] {
            old.push((name, installed.pid(name).await.unwrap()));
        }
        let before = decided(&node).await;
        old.iter().filter(|(name, _)| killed.contains(name)).for_each(|(_, pid)| send(*pid, Signal::KILL));
        // CometBFT ends with its application, and its mempool is lost.
        let ended = |name: &str| name == "cometbft" || killed.contains(&name);
        for (name, pid) in old.into_iter().filter(|(name, _)| ended(name)) {
            installed.new_pid(name, pid).await;
        }
        decided_after(&node, before).await;
        submits(&up, &node).await;
    }
    // Blocks are decided while the store is down, and written when it is up again.
    installed.order(&["stop", "postgres"]).await;
    decided_after(&node, decided(&node).await).await;
    installed.order(&["start", "postgres"]).await;
    submits(&up, &node).await;
    let url = database(installed.pid("ingest").await.unwrap());
    let newest = same_blocks(&url, &node).await;
    assert!(newest > 43, "{newest}");
    installed.order(&["stop", "cometbft"]).await;
    assert_eq!(installed.pid("cometbft").await, None);
    installed.order(&["start", "cometbft"]).await;
    decided_after(&node, newest.unsigned_abs()).await;
    submits(&up, &node).await;

    installed.stop(up, Signal::INT).await;
    let again = installed.up_with(&["--demo-blocks", "40", "--consensus", "cometbft"]).await;
    let node = cometbft(&installed.home());
    submits(&again, &node).await;
    let url = database(installed.pid("ingest").await.unwrap());
    assert!(same_blocks(&url, &node).await > newest);
    let stderr = installed.stop(again, Signal::TERM).await;
    assert!(!stderr.contains("set aside"), "{stderr}");
}

#[tokio::test]
async fn the_development_node_makes_blocks_while_its_log_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("blocks");
    ChainFile::create(&file, &Base::empty("test-1", SpamRules::default())).unwrap();
    let size = || std::fs::metadata(&file).unwrap().len();
    let before = size();
    let mut node = command(&["devnode"]);
    node.env("MESH_DEVNODE_FILE", &file).env("MESH_DEVNODE_BLOCK_MS", "10");
    let full = std::fs::File::create("/dev/full").unwrap();
    let mut node = node.stderr(full).kill_on_drop(true).spawn().unwrap();
    eventually(PATIENCE, "no block is made", async || size() > before).await;
    node.kill().await.unwrap();
}

#[tokio::test]
async fn without_cometbft_the_error_says_how_to_install_it() {
    let installed = Installed::new();
    let mut command = installed.mesh(&["up", "--port", "0", "--grpc-port", "0", "--consensus", "cometbft"]);
    let failed = Outcome::of(command.env("PATH", ""), b"").await;
    failed.fails(69, &["go install github.com/cometbft/"]);
}
