//! `mesh ingest`: recorded blocks are decoded, and blocks of another source are stored in order.

use std::{path::Path, process::Stdio, time::Duration};

use mesh_testbed::{
    Database, Service, eventually,
    scripted_node::{Chain, Version, trade},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::{Outcome, command, mesh, says};

/// A block of `mesh ingest rows`.
fn block(height: u64, rows: &Value) -> Value {
    json!({
        "height": height, "time": format!("2026-01-01T00:00:{height:02}.123456789Z"), "hash": format!("{height:064x}"),
        "previousHash": format!("{:064X}", height - 1), "rows": rows,
    })
}

fn parameter(value: &str) -> Value {
    json!([{"table": "network_parameters", "values": {"key": "a", "value": value}}])
}

fn write(folder: &Path, lines: &[Value]) -> String {
    let file = folder.join("blocks.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, text).unwrap();
    file.to_string_lossy().into_owned()
}

async fn rows(database: &Database, file: &str) -> Outcome {
    mesh(&["ingest", "rows", file, "--postgres", database.url(), "--chain", "net-1"]).await
}

#[tokio::test]
async fn blocks_of_another_source_are_stored_in_order_up_to_the_first_fault() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let mut lines: Vec<Value> = (1..=5).map(|height| block(height, &parameter("x"))).collect();
    let stored = async || {
        let client = database.connect().await;
        let sql = "SELECT coalesce(string_agg(height::text, ' ' ORDER BY height), '') FROM blocks";
        client.query_one(sql, &[]).await.unwrap().get::<_, String>(0)
    };
    let unnamed = write(folder.path(), &lines);
    let refused = mesh(&["ingest", "rows", &unnamed, "--postgres", database.url()]).await;
    refused.fails(2, &["--chain"]);
    rows(&database, "/no/such").await.fails(1, &["cannot read /no/such: No such file"]);
    // A value that PostgreSQL refuses, a date of two meanings, an unknown column, a gap, a fork.
    let good = lines.clone();
    let epoch =
        |column: &str, value: &str| block(3, &json!([{"table": "epochs", "values": {column: value}}]));
    let plain = |height: u64, time: &str, hash: &str| json!({"height": height, "time": time, "hash": hash, "rows": []});
    let mut forked = plain(3, "2026-01-01T00:00:03Z", "3");
    forked["previousHash"] = json!("");
    for (wrong, words) in [
        (epoch("id", "x"), "line 3: refused: table epochs, column id"),
        (
            epoch("start_time", "03/02/2026"),
            "line 3: refused: table epochs, column start_time, value \"03/02/2026\": ",
        ),
        (epoch("no", "x"), "line 3: decode: table epochs, column no"),
        (block(4, &json!([])), "line 3: height 4 does not follow 2"),
        (forked, "line 3: forked: it follows nothing, the store's block 2"),
        (plain(2, "2026-01-01T00:00:03Z", "f"), "line 3: forked: block 2"),
        (plain(3, "soon", "3"), "line 3: time \"soon\""),
        (plain(3, "9999-12-31T23:59:59Z", "3"), "line 3: time \"9999-12-31T23:59:59Z\" cannot be stored: "),
        (plain(3, "2026-01-01T00:00:03Z", "q83v="), "line 3: hash \"q83v=\": write it in hex"),
        (json!({"height": 3}), "line 3: missing field `time` at column "),
    ] {
        lines[2] = wrong;
        let outcome = rows(&database, &write(folder.path(), &lines)).await;
        outcome.fails(1, &[words]);
        assert_eq!(stored().await, "1 2");
    }
    let file = write(folder.path(), &good);
    std::fs::write(&file, format!("\u{feff}{}", std::fs::read_to_string(&file).unwrap())).unwrap();
    assert_eq!(rows(&database, &file).await.done(), "3 blocks stored, the newest is 5\n");
    assert_eq!(stored().await, "1 2 3 4 5");
}

#[tokio::test]
async fn blocks_share_a_transaction_only_while_their_rows_fit() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let parameter =
        |id: u64| json!({"table": "network_parameters", "values": {"key": id.to_string(), "value": "x"}});
    let parameters: Value = (0..600).map(parameter).collect();
    let lines: Vec<Value> = (1..=2).map(|height| block(height, &parameters)).collect();
    rows(&database, &write(folder.path(), &lines)).await.done();
    let sql = "SELECT count(DISTINCT xmin::text) FROM blocks";
    let transactions = database.connect().await.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(transactions, 2, "1,000 rows are the most of a first transaction");
}

#[tokio::test]
async fn a_repeated_call_passes_stored_blocks_and_names_one_of_another_hash() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let block = |height: u64| json!({"height": height, "time": "2026-01-01T00:00:00Z", "hash": format!("{height:x}"), "rows": []});
    let mut lines: Vec<Value> = (5..=1_504).map(block).collect();
    let file = write(folder.path(), &lines);
    assert_eq!(rows(&database, &file).await.done(), "1500 blocks stored, the newest is 1504\n");
    assert_eq!(rows(&database, &file).await.done(), "0 blocks stored, the newest is 1504\n");
    // The last line of the first read of hashes, and the first one of the second.
    for (line, height) in [(1_000, 1_004), (1_001, 1_005)] {
        let right = std::mem::replace(&mut lines[line - 1]["hash"], json!("ff"));
        let expected = format!("line {line}: forked: block {height} is ff, the store's is {height:x}");
        rows(&database, &write(folder.path(), &lines)).await.fails(1, &[&expected]);
        lines[line - 1]["hash"] = right;
    }
    lines.insert(0, block(4));
    let outcome = rows(&database, &write(folder.path(), &lines)).await;
    outcome.fails(1, &["line 1: height 4 is below the oldest stored block"]);
}

#[tokio::test]
async fn recorded_blocks_are_decoded_into_rows() {
    let folder = tempfile::tempdir().unwrap();
    let event = json!({"type": "mesh.epochs", "attributes": [{"key": "id", "value": "\"7\""}]});
    let recorded = |event: &Value| {
        json!({
            "block": {
                "block_id": {"hash": "AB"},
                "block": {
                    "header": {"chain_id": "net-1", "height": "1", "time": "2026-01-01T00:00:00Z"},
                    "data": {"txs": ["eA=="]},
                },
            },
            "results": {"height": "1", "txs_results": [{"code": 0, "events": [event]}]},
        })
    };
    let file = write(folder.path(), &[recorded(&event)]);
    let outcome = mesh(&["ingest", "decode", "--blocks", &file, "--decoder", "events"]).await;
    outcome.done();
    says(&outcome.error, &["block 1: 1 rows"]);
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(outcome.json(), json!({"table": "epochs", "values": {"id": "7", "tx_hash": hash}}));
    let decode = |file: &str| command(&["ingest", "decode", "--blocks", file, "--decoder", "events"]);
    let marked = ["\u{feff}".as_bytes(), &std::fs::read(&file).unwrap()].concat();
    let piped = Outcome::of(&mut decode("-"), &marked).await;
    assert_eq!(piped.done(), outcome.text());
    let (_, closed) = std::io::pipe().unwrap();
    Outcome::writing_to(&mut decode(&file), closed).await.ends_silently();
    let file = write(folder.path(), &[recorded(&json!({"type": "mesh.blocks"}))]);
    let outcome = mesh(&["ingest", "decode", "--blocks", &file, "--decoder", "events"]).await;
    outcome.fails(1, &["block 1: table blocks"]);
}

#[tokio::test]
async fn a_recording_is_whole_or_not_there() {
    let chain = Chain::start(Version::V038).await;
    (0..3).for_each(|_| _ = chain.add(Vec::new()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("blocks.jsonl");
    std::fs::write(&file, "an earlier recording").unwrap();
    let record = async |to: &str, output: &str| {
        mesh(&["ingest", "record", "--node", &chain.url, "--from", "1", "--to", to, "-o", output]).await
    };
    let output = file.to_str().unwrap();
    record("10000000000", output).await.fails(1, &["block 4: "]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "an earlier recording");
    record("3", output).await.done();
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 3);
    assert_eq!(record("3", "-").await.done(), lines);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[tokio::test]
async fn a_recording_that_is_stopped_leaves_nothing() {
    // Connections are accepted by the system, and no request is answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let node = format!("http://{}", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (output, part) = (folder.path().join("b.jsonl"), folder.path().join("b.jsonl.part"));
    let mut record = command(&["ingest", "record", "--node", &node, "--from", "1", "--to", "1", "-o"]);
    let record = record.arg(&output).kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = record.spawn().unwrap();
    eventually(Duration::from_secs(20), "the recording does not begin", async || part.exists()).await;
    kill_process(Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    let outcome = Outcome::from(child.wait_with_output().await.unwrap());
    outcome.fails(1, &["stopped"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// One operator follows the chain from its first block, the other from the segments of the first one.
#[tokio::test]
async fn two_operators_seal_segments_with_equal_ids_and_their_rows_are_those_of_the_node() {
    let chain = Chain::start(Version::V038).await;
    let grow =
        |blocks: u64| (0..blocks).for_each(|id| _ = chain.add(vec![trade(id, "1"), trade(id + 100, "2")]));
    grow(25);
    let follow = async |database: &Database, height: i64| {
        let service = Service::configure("ingest").database(database).env("MESH_NODE_URL", &chain.url);
        let service = service.start_unready().await;
        let client = database.connect().await;
        eventually(Duration::from_secs(20), "the chain is not stored", async || {
            let head = client.query_opt("SELECT height FROM last_block", &[]).await.unwrap();
            head.is_some_and(|row| row.get::<_, i64>(0) == height)
        })
        .await;
        service
    };
    let seal = async |database: &Database, folder: &Path| {
        let folder = folder.to_str().unwrap();
        let sealed =
            ["seal", "--postgres", database.url(), "--history", folder, "--interval", "10", "--json"];
        mesh(&sealed).await.done();
        mesh(&["history", "verify", folder, "--json"]).await.json()["sound"].clone()
    };
    let (one, two) = (Database::fresh().await, Database::fresh().await);
    let (folder, other_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = follow(&one, 25).await;
    assert_eq!(seal(&one, folder.path()).await.as_array().unwrap().len(), 2);
    let path = folder.path().to_str().unwrap();
    mesh(&["history", "import", path, "--postgres", two.url()]).await.done();
    grow(20);
    let second = follow(&two, 45).await;
    drop((first, second));
    let _first = follow(&one, 45).await;
    let segments = seal(&one, folder.path()).await;
    assert_eq!(segments.as_array().unwrap().len(), 4);
    assert_eq!(seal(&two, other_folder.path()).await, segments);

    let check = async || {
        mesh(&["ingest", "check", "--postgres", two.url(), "--node", &chain.url, "--blocks", "1000"]).await
    };
    assert_eq!(check().await.done(), "45 blocks with 90 rows are stored as decoded\n");
    let wrong = "UPDATE orders SET price = price; DELETE FROM trades WHERE seq_num = 1 AND block_time = \
        (SELECT block_time FROM blocks WHERE height = 7)";
    two.connect().await.batch_execute(wrong).await.unwrap();
    let different = check().await;
    assert!(different.text().starts_with("block 7: trades: not stored: {\"id\""), "{different:?}");
    assert_eq!(different.code, Some(1));
}
