//! A recorded run of a real test network, loaded and read back: `../shared/data/smoketest-5000` next to the
//! workspace. Without that folder these tests are skipped with a message.

use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use mesh_store::load::{LoadReport, load_folder};
use mesh_testbed::Database;
use tokio_postgres::Client;

/// Files of the recording that the schema has no table for.
const SKIPPED: [&str; 3] = ["candles.csv", "parties.csv", "transaction_results.csv"];

/// The recording's folder; `None` with a message when it does not exist.
fn recording() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/smoketest-5000");
    if folder.is_dir() {
        return Some(folder);
    }
    mesh_testbed::say("skipped: there is no ../shared/data/smoketest-5000 beside the workspace");
    None
}

async fn loaded() -> Option<(Database, LoadReport, PathBuf)> {
    let folder = recording()?;
    let database = Database::fresh().await;
    let report = load_folder(database.url(), &folder, |_, _, _| ()).await.unwrap();
    Some((database, report, folder))
}

/// The lines that COPY gives for `source`, a table or a query in parentheses.
async fn copied(client: &Client, source: &str) -> Vec<String> {
    let copy = format!("COPY {source} TO STDOUT (FORMAT csv, HEADER)");
    let mut stream = Box::pin(client.copy_out(&copy).await.unwrap());
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    String::from_utf8(bytes).unwrap().lines().map(ToOwned::to_owned).collect()
}

/// Sorts the lines after the header, because the order of a table's rows is undefined.
fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines[1..].sort();
    lines
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn every_table_of_the_recording_loads_and_what_is_left_out_is_named() {
    let Some((database, report, folder)) = loaded().await else { return };
    let client = database.connect().await;
    assert_eq!(report.tables.len(), 23);
    assert_eq!(report.tables.last().map(|last| last.table.as_str()), Some("blocks"));
    for table in &report.tables {
        let stored = client.query_one(&format!("SELECT count(*) FROM {}", table.table), &[]).await.unwrap();
        let in_file = lines(&folder.join(format!("{}.csv", table.table))).len() - 1;
        assert_eq!(
            (table.rows, stored.get::<_, i64>(0)),
            (in_file as u64, in_file as i64),
            "{}",
            table.table
        );
        let oracle_specs = table.table == "oracle_specs";
        assert_eq!(
            table.skipped_columns,
            if oracle_specs { vec!["data"] } else { vec![] },
            "{}",
            table.table
        );
        assert_eq!(table.defaulted_columns, if oracle_specs { vec!["internal_conditions"] } else { vec![] });
    }
    let skipped: Vec<&str> = report.skipped_files.iter().map(|skip| skip.file.as_str()).collect();
    assert_eq!(skipped, SKIPPED);
}

#[tokio::test]
async fn every_table_without_skipped_columns_copies_out_as_the_bytes_of_its_file() {
    let Some((database, report, folder)) = loaded().await else { return };
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    for table in report.tables.iter().filter(|table| table.skipped_columns.is_empty()) {
        let file = lines(&folder.join(format!("{}.csv", table.table)));
        assert!(sorted(copied(&client, &table.table).await) == sorted(file), "{} differs", table.table);
    }
}

#[tokio::test]
async fn candles_of_all_intervals_are_those_of_the_recording() {
    let Some((database, _, folder)) = loaded().await else { return };
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    let intervals = ["block", "1_minute", "5_minutes", "15_minutes", "1_hour", "6_hours", "1_day"];
    let queries: Vec<String> = intervals
        .iter()
        .map(|interval| {
            format!(
                "SELECT 'trades_candle_{interval}_' || market_id AS candle_id, market_id,
                     replace('{interval}', '_', ' ') AS \"interval\", period_start, open, close, high, low, volume,
                     last_update_in_period FROM trades_candle_{interval}"
            )
        })
        .collect();
    let stored = copied(&client, &format!("({})", queries.join(" UNION ALL "))).await;
    assert_eq!(stored.len(), 79);
    assert_eq!(sorted(stored), sorted(lines(&folder.join("candles.csv"))));
}

#[tokio::test]
async fn the_newest_rows_of_the_recording_are_there() {
    let Some((database, ..)) = loaded().await else { return };
    let client = database.connect().await;
    for (query, count) in [
        ("SELECT count(*) FROM last_block WHERE height = 5001", 1),
        ("SELECT count(*) FROM delegations_current", 659),
        ("SELECT count(DISTINCT (party_id, node_id, epoch_id)) FROM delegations", 659),
        ("SELECT count(*) - (SELECT count(DISTINCT account_id) FROM balances) FROM current_balances", 0),
        (
            "SELECT count(*) - (SELECT count(DISTINCT key) FROM network_parameters) FROM network_parameters_current",
            0,
        ),
    ] {
        assert_eq!(client.query_one(query, &[]).await.unwrap().get::<_, i64>(0), count, "{query}");
    }
}
