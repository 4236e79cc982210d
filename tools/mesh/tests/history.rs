//! The commands about sealed history: seal, verify, import, seal again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use futures_util::TryStreamExt as _;
use mesh_demo::{Plan, write_history};
use mesh_loader::load::load_folder;
use mesh_testbed::Database;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};
use tokio_postgres::Client;

use crate::command::{Outcome, command, mesh, says};

const PATIENCE: Duration = Duration::from_secs(60);

/// Tables that the database derives from others.
const DERIVED: &str = "current_balances delegations_current deposits_current first_rows_of_epochs last_block \
    markets_current network_parameters_current orders_current orders_rested positions_current \
    protocol_upgrade_proposals_current trades_candle withdrawals_current";

/// Every segment with its id.
async fn ids(folder: &Path) -> Vec<(String, String)> {
    let found = mesh(&["history", "verify", folder.to_str().unwrap(), "--json"]).await.json();
    assert_eq!(found["faults"], Value::Array(Vec::new()));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let segments = found["sound"].as_array().unwrap();
    segments.iter().map(|segment| (text(&segment["segment"]), text(&segment["id"]))).collect()
}

/// A database with a demo network, and its history sealed.
struct Source {
    database: Database,
    folder: TempDir,
    interval: u32,
}

impl Source {
    async fn new(blocks: u64, interval: u32) -> Self {
        let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
        let plan = Plan { blocks, markets: 2, parties: 12, ..Plan::default() };
        write_history(database.url(), &plan, |_, _| {}).await.unwrap();
        seal(&database, folder.path(), interval).await;
        Self { database, folder, interval }
    }

    fn segments(&self) -> PathBuf {
        self.folder.path().join("segments")
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// A copy of the segments that a test may damage.
    fn copy(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(self.segments()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        folder
    }

    async fn import_into(&self, database: &Database, more: &[&str]) -> Outcome {
        mesh(&[&["history", "import", self.path(), "--postgres", database.url()], more].concat()).await
    }

    async fn import(&self, database: &Database) -> String {
        self.import_into(database, &[]).await.done().to_owned()
    }

    /// Everything up to a height, loaded into its own database.
    async fn first_blocks(&self, height: i64) -> Database {
        let (client, folder) = (self.database.connect().await, tempfile::tempdir().unwrap());
        client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
        for table in tables(&client).await {
            let rows = match table.as_str() {
                "chain" => "chain".to_owned(),
                _ => format!(
                    "(SELECT * FROM {table} WHERE block_time <=
                        (SELECT block_time FROM blocks WHERE height = {height}))"
                ),
            };
            fs::write(folder.path().join(format!("{table}.csv")), copied(&client, &rows).await).unwrap();
        }
        let database = Database::fresh().await;
        load_folder(database.url(), folder.path(), |_, _, _| ()).await.unwrap();
        database
    }
}

async fn seal(database: &Database, folder: &Path, interval: u32) -> String {
    let (folder, interval) = (folder.to_str().unwrap(), interval.to_string());
    let seal =
        ["seal", "--newest", "--postgres", database.url(), "--history", folder, "--interval", &interval];
    mesh(&seal).await.done().to_owned()
}

async fn copied(client: &Client, rows: &str) -> Vec<u8> {
    let rows = client.copy_out(&format!("COPY {rows} TO STDOUT (FORMAT csv, HEADER)")).await.unwrap();
    let pieces: Vec<_> = rows.try_collect().await.unwrap();
    pieces.concat()
}

/// The tables that a segment has rows of.
async fn tables(client: &Client) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        AND relname NOT IN ('refinery_schema_history', 'node_state', 'last_snapshot_span', 'assets', 'assets_current')
        AND relname <> ALL (string_to_array($1, ' '))";
    let rows = client.query(sql, &[&DERIVED]).await.unwrap();
    let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(tables.len(), 22);
    tables
}

/// All rows of all tables, each table's in an order of its own.
async fn contents(database: &Database) -> Vec<(String, Vec<String>)> {
    let client = database.connect().await;
    client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    let mut contents = Vec::new();
    for table in tables(&client).await.into_iter().chain(DERIVED.split(' ').map(str::to_owned)) {
        let rows = client.query(&format!("SELECT t::text FROM {table} AS t ORDER BY 1"), &[]).await.unwrap();
        contents.push((table, rows.iter().map(|row| row.get(0)).collect()));
    }
    contents.sort();
    contents
}

#[tokio::test]
async fn a_history_that_is_imported_is_the_one_that_was_sealed() {
    let source = Source::new(130, 50).await;
    assert_eq!(seal(&source.database, source.folder.path(), source.interval).await, "nothing to seal\n");
    let sealed = ids(source.folder.path()).await;
    // An upgrade that is approved in block 80 ends one early: 1-50, 51-80, 81-100, 101-130.
    assert_eq!(sealed.len(), 4, "{sealed:?}");
    assert!(sealed.iter().any(|(name, _)| name.ends_with("-51-80.zip")), "{sealed:?}");
    let (empty, half) = (Database::empty().await, source.first_blocks(70).await);
    let rows = contents(&source.database).await;
    assert!(rows.iter().filter(|(_, rows)| !rows.is_empty()).count() > 20, "too little to tell");
    for (database, there) in [(&empty, 0), (&half, 1)] {
        let imported = source.import_into(database, &[]).await;
        says(&imported.error, &["no segment has assets", "mesh load"]);
        let output = imported.done();
        let counted = format!("from {} of 4 segments, {there} were there\n", 4 - there);
        assert!(output.ends_with(&counted), "{output}");
        assert!(contents(database).await == rows, "the rows differ");
        let again = tempfile::tempdir().unwrap();
        assert_eq!(seal(database, again.path(), source.interval).await.lines().count(), 4);
        assert_eq!(ids(again.path()).await, sealed);
        assert_eq!(source.import(database).await, "0 rows from 0 of 4 segments, 4 were there\n");
    }
}

#[tokio::test]
async fn a_database_that_disagrees_is_left_as_it_is() {
    let source = Source::new(24, 20).await;
    // Rows that differ are in the loader's tests.
    let spoilt = [
        ("UPDATE chain SET id = 'other'", ["the chain \"other\"", "nothing was imported"]),
        ("DELETE FROM blocks WHERE height <= 2", ["begins at height 3", "an empty one"]),
    ];
    for (sql, parts) in spoilt {
        let database = source.first_blocks(12).await;
        database.connect().await.batch_execute(sql).await.unwrap();
        let before = contents(&database).await;
        source.import_into(&database, &[]).await.fails(1, &parts);
        assert!(contents(&database).await == before, "{sql} and an import change rows");
    }
}

#[tokio::test]
async fn a_history_with_a_part_missing_is_not_imported() {
    // 1-20, 21-32 with an upgrade's block at its end, 33-40, 41-50.
    let source = Source::new(50, 20).await;
    let names: Vec<String> = ids(source.folder.path()).await.into_iter().map(|(name, _)| name).collect();
    let database = Database::empty().await;
    let import = async |folder: &TempDir, database: &Database| {
        mesh(&["history", "import", folder.path().to_str().unwrap(), "--postgres", database.url()]).await
    };
    let folder = source.copy();
    fs::remove_file(folder.path().join(&names[1])).unwrap();
    import(&folder, &database).await.fails(1, &["nothing was imported", "21 to 32", &names[2]]);
    fs::remove_file(folder.path().join(&names[0])).unwrap();
    import(&folder, &database).await.fails(1, &["the database is empty", &names[2]]);
    let short = source.first_blocks(24).await;
    import(&folder, &short).await.fails(1, &["ends at height 24", "begins at 33"]);
    let long = source.first_blocks(45).await;
    // It continues within the segment.
    import(&folder, &long).await.done();
    assert!(contents(&long).await == contents(&source.database).await);

    // A damage found only while the text is read: earlier segments stay imported, this one is rolled back.
    let folder = source.copy();
    spoil(&folder.path().join(&names[1]), b"history/trades.csv", 60);
    let refused = import(&folder, &database).await;
    assert!(refused.text().contains(&names[0]));
    refused.fails(1, &["1 of 4 segments", &names[1], "trades", "damaged"]);
    let head = "SELECT max(height), (SELECT height FROM last_block) FROM blocks";
    let head = database.connect().await.query_one(head, &[]).await.unwrap();
    assert_eq!((head.get::<_, i64>(0), head.get::<_, i64>(1)), (20, 20));
    source.import(&database).await;
    assert!(contents(&database).await == contents(&source.database).await);
}

/// Flips a bit so many bytes behind the first mention of a member.
fn spoil(path: &Path, member: &[u8], behind: usize) {
    let mut object = fs::read(path).unwrap();
    let at = object.windows(member.len()).position(|bytes| bytes == member).unwrap() + member.len() + behind;
    object[at] ^= 4;
    fs::write(path, object).unwrap();
}

#[tokio::test]
async fn verification_names_what_is_wrong_and_with_which_segment() {
    let source = Source::new(50, 20).await;
    let names: Vec<String> = ids(source.folder.path()).await.into_iter().map(|(name, _)| name).collect();
    let verify = async |folder: &TempDir| mesh(&["history", "verify", folder.path().to_str().unwrap()]).await;
    let folder = source.copy();
    spoil(&folder.path().join(&names[1]), b"history/orders.csv", 30);
    let found = verify(&folder).await;
    found.fails(1, &["incomplete or damaged"]);
    assert!(found.text().starts_with(&names[1]) && found.text().lines().count() == 1, "{found:?}");
    says(found.text(), &["history/orders.csv"]);

    let empty = tempfile::tempdir().unwrap();
    verify(&empty).await.fails(1, &["no segment"]);
    mesh(&["history", "verify", "/nonexistent"]).await.fails(1, &["no such folder"]);
}

#[tokio::test]
async fn files_of_another_chain_are_named_and_do_not_count() {
    let (source, database) = (Source::new(24, 20).await, Database::empty().await);
    let folder = source.copy();
    for name in ["other-0002-1-1-10.zip", "notes.zip"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let verified = mesh(&["history", "verify", path]).await;
    says(verified.done(), &["3 segments from height 1 to 24", "sound"]);
    says(&verified.error, &["notes.zip, other-0002-1-1-10.zip"]);
    let other = mesh(&["history", "verify", path, "--chain", "other-0002"]).await;
    assert_eq!(other.code, Some(1));
    says(&other.error, &["1 thing is"]);
    let imported = mesh(&["history", "import", path, "--postgres", database.url()]).await;
    says(imported.done(), &["from 3 of 3 segments"]);
    says(&imported.error, &["ignored other-0002-1-1-10.zip"]);
    assert!(contents(&database).await == contents(&source.database).await);
}

#[tokio::test]
async fn a_load_names_what_it_leaves_out_and_a_refused_one_says_that_nothing_was_loaded() {
    let (database, folder) = (Database::empty().await, tempfile::tempdir().unwrap());
    let blocks = "block_time,height,hash\n2023-01-18 01:00:01+00,1,aa\n2023-01-18 01:00:03+00,3,cc\n";
    fs::write(folder.path().join("blocks.csv"), blocks).unwrap();
    let load = async || mesh(&["load", folder.path().to_str().unwrap(), "--postgres", database.url()]).await;
    let refused = load().await;
    assert_eq!(refused.code, Some(1));
    says(&refused.error, &["nothing was loaded", "blocks.csv, line 3: height 2 is missing"]);

    fs::write(folder.path().join("notes.csv"), "").unwrap();
    let blocks = "block_time,height,hash,colour\n2023-01-18 01:00:01+00,1,aa,red\n";
    fs::write(folder.path().join("blocks.csv"), blocks).unwrap();
    fs::write(folder.path().join("chain.csv"), "id\nnet-1\n").unwrap();
    let loaded = load().await;
    loaded.done();
    let parts = [
        "skipped the file notes.csv: there is no such table",
        "skipped in blocks the unknown columns colour",
        "left to their default in chain the columns onerow_check",
        "loaded 2 rows into 2 tables",
    ];
    says(&loaded.error, &parts);
}

#[tokio::test]
async fn sealing_waits_for_another_writer() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let writer = database.connect().await;
    // "meshseal", the key of the advisory lock of the single writer.
    writer.execute("SELECT pg_advisory_lock(x'6d6573687365616c'::int8)", &[]).await.unwrap();
    let folder = folder.path().to_str().unwrap();
    let mut command = command(&["seal", "--postgres", database.url(), "--history", folder]);
    let mut child = command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut error = BufReader::new(child.stderr.take().unwrap());
    timeout(PATIENCE, error.read_line(&mut line)).await.unwrap().unwrap();
    assert_eq!(line, "another writer is sealing; waiting until it is done\n");
    drop(writer);
    let output = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"nothing to seal\n"[..]));
}

#[tokio::test]
async fn the_running_span_is_sealed_before_the_tables_of_exports_change() {
    let source = Source::new(50, 20).await;
    let (folder, nothing) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let client = source.database.connect().await;
    let history = folder.path().to_str().unwrap();
    let import = async || source.import_into(&source.database, &["--history", history]).await;
    import().await.done();
    assert!(!folder.path().join("segments").exists(), "no migration was missing");
    let version = source.database.schema_version().await;
    // The only migration that changes these tables is marked as missing. It cannot be applied twice, and its
    // error shows that sealing came first.
    client.batch_execute("DELETE FROM refinery_schema_history WHERE version = 1").await.unwrap();
    let failed = import().await;
    assert_eq!(failed.code, Some(1));
    says(&failed.error, &["migrating the database failed"]);
    let sealed = ids(folder.path()).await;
    let names: Vec<&str> = sealed.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["1-32", "33-50"].map(|span| format!("demo-0001-{version}-{span}.zip"));
    assert_eq!(names, expected, "an upgrade's block, then with the interval of 1000 up to 50");
    let load = mesh(&["load", nothing.path().to_str().unwrap(), "--postgres", source.database.url()]).await;
    assert!(load.code == Some(1) && !load.error.contains("sealing"), "a load without a history: {load:?}");
}
