//! The schema against the contract: every table, column, key, index, default and enum label, as data in the files
//! beside this one and below.

use std::collections::BTreeMap;

use mesh_store::schema::primary_keys;
use mesh_testbed::Database;
use tokio_postgres::Row;

/// The contract's tables: a line with the name, then indented lines with the columns in order as `name:type`, with `!`
/// for NOT NULL. Types are the contract's own short names; `ctext` is a text that sorts by bytes.
const TABLES: &str = include_str!("tables.txt");

/// Keys and indexes: a line with the name of the table, then an indented line for each.
const KEYS: &str = include_str!("keys.txt");

/// Enum types: a line with the name, then indented lines with the labels in order.
const ENUMS: &str = include_str!("enums.txt");

/// Columns with a default. Everything else has none.
const DEFAULTS: [&str; 6] = [
    "chain.onerow_check true", "last_block.onerow_check true", "last_snapshot_span.onerow_check true",
    "node_state.onerow_check true", "orders.post_only false", "orders.reduce_only false",
];

/// Tables that are not in the contract: that of the migration library, and what lists are read from.
const OURS: [&str; 10] = [
    "refinery_schema_history", "trades_candle", "assets_current", "deposits_current", "first_rows_of_epochs",
    "markets_current", "orders_current", "orders_rested", "positions_current", "withdrawals_current",
];

/// The rows of a query in a database with the newest schema.
async fn rows(query: &str) -> Vec<Row> {
    let (_database, client) = Database::with_client().await;
    client.query(query, &[]).await.unwrap()
}

/// Reads names, each with indented lines below it, into a map of the lines.
fn blocks(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            Some(inner) => found.get_mut(&name).unwrap().push(inner.to_owned()),
            None => {
                name = line.to_owned();
                found.insert(name.clone(), Vec::new());
            }
        }
    }
    found
}

fn words(lines: &[String]) -> Vec<String> {
    lines.iter().flat_map(|line| line.split(' ')).map(ToOwned::to_owned).collect()
}

/// The contract's column as PostgreSQL describes it.
fn described(column: &str) -> String {
    let (name, kind) = column.split_once(':').unwrap();
    let (kind, not_null) = kind.strip_suffix('!').map_or((kind, ""), |kind| (kind, " not null"));
    let full = match kind {
        "id" | "ctext" => "text C",
        "ts" => "timestamp with time zone",
        "big" => "bigamount",
        "num" => "numeric",
        "num16" => "numeric(94,16)",
        "int8" => "bigint",
        "int4" => "integer",
        "int2" => "smallint",
        "bool" => "boolean",
        "float8" => "double precision",
        other => other,
    };
    format!("{name} {full}{not_null}")
}

#[tokio::test]
async fn every_table_has_the_columns_of_the_contract_in_their_order() {
    let rows = rows(include_str!("columns.sql")).await;
    let mut found: BTreeMap<String, Vec<String>> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for ours in OURS {
        assert!(found.remove(ours).is_some(), "no table {ours}");
    }
    let expected: BTreeMap<String, Vec<String>> = blocks(TABLES)
        .into_iter()
        .map(|(table, columns)| (table, words(&columns).iter().map(|column| described(column)).collect()))
        .collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, columns) in expected {
        assert_eq!(found[&table], columns, "{table}");
    }
    // Writers read the columns from the text of the migrations.
    for table in mesh_store::append::tables() {
        let name = |column: &String| column.split(' ').next().unwrap_or_default().to_owned();
        let declared: Vec<_> = table.columns.iter().map(|column| column.name.clone()).collect();
        assert_eq!(found[table.name].iter().map(name).collect::<Vec<_>>(), declared, "{}", table.name);
    }
}

#[tokio::test]
async fn every_table_has_the_keys_and_indexes_of_the_contract_and_no_others() {
    let rows = rows(include_str!("indexes.sql")).await;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        found.entry(row.get(0)).or_default().push(row.get(1));
    }
    for ours in OURS {
        found.remove(ours);
    }
    let mut expected = blocks(KEYS);
    for keys in found.values_mut().chain(expected.values_mut()) {
        keys.sort();
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn keys_are_found_behind_another_schema_in_the_search_path() {
    let (_database, client) = Database::with_client().await;
    let keys = primary_keys(&client).await.unwrap();
    assert_eq!(keys["blocks"], ["block_time"]);
    client.batch_execute("CREATE SCHEMA other; SET search_path = other, public").await.unwrap();
    assert_eq!(primary_keys(&client).await.unwrap(), keys);
}

#[tokio::test]
async fn enum_types_have_the_labels_of_the_contract_in_their_order() {
    let rows = rows(include_str!("labels.sql")).await;
    let found: BTreeMap<String, Vec<String>> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected: BTreeMap<String, Vec<String>> =
        blocks(ENUMS).into_iter().map(|(name, labels)| (name, words(&labels))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn defaults_are_those_of_the_contract() {
    let rows = rows(include_str!("defaults.sql")).await;
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, DEFAULTS);
}

#[tokio::test]
async fn a_one_row_table_takes_one_row() {
    let (_database, client) = Database::with_client().await;
    client.batch_execute("INSERT INTO chain (id) VALUES ('testnet')").await.unwrap();
    client.batch_execute("INSERT INTO chain (id) VALUES ('other')").await.unwrap_err();
    client.batch_execute("INSERT INTO chain VALUES ('other', false)").await.unwrap_err();
}

#[tokio::test]
async fn amounts_hold_78_digits_and_no_fraction() {
    let (_database, client) = Database::with_client().await;
    let longest = "9".repeat(78);
    let row = client.query_one(&format!("SELECT ('-{longest}'::bigamount)::text"), &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), format!("-{longest}"));
    client.batch_execute(&format!("SELECT '{longest}0'::bigamount")).await.unwrap_err();
}

#[tokio::test]
async fn each_candle_view_has_the_columns_of_the_contract() {
    let rows = rows(include_str!("candles.sql")).await;
    let mut names = Vec::new();
    for row in &rows {
        names.push(row.get::<_, &str>(0));
        assert_eq!(
            row.get::<_, &str>(1),
            "market_id text, period_start timestamp with time zone, open bigamount, close bigamount, \
             high bigamount, low bigamount, volume numeric, last_update_in_period timestamp with time zone"
        );
    }
    names.sort_unstable();
    assert_eq!(
        names,
        ["15_minutes", "1_day", "1_hour", "1_minute", "5_minutes", "6_hours", "block"]
            .map(|interval| format!("trades_candle_{interval}"))
    );
}
