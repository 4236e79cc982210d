//! `docs/tables.md`, `docs/tables.sql` and `dictionary.json`: what the columns of the exportable tables hold, for
//! analysts. All are generated from the schema and its comments.

use std::fmt::Write as _;

use mesh_store::dictionary::{DescribedColumn, DescribedTable};
use mesh_testbed::{Database, assert_generated, assert_generated_part};
use proto_msgs::v2::Table;
use tokio_postgres::Client;

/// The exportable tables by name.
fn exportable() -> Vec<String> {
    let mut tables: Vec<String> = Table::exportable().into_iter().map(Table::relation).collect();
    tables.sort();
    tables
}

const COLUMNS: &str = include_str!("columns.sql");

struct Column {
    name: String,
    is_required: bool,
    comment: String,
    /// As PostgreSQL calls it, without domains; `text` for an enum.
    kind: String,
    labels: Vec<String>,
    enum_name: String,
}

async fn columns(client: &Client, table: &str) -> Vec<Column> {
    let rows = client.query(COLUMNS, &[&table]).await.unwrap();
    let column = |row: &tokio_postgres::Row| {
        let labels: Vec<String> = row.get(4);
        let kind = if labels.is_empty() { row.get(3) } else { "text".to_owned() };
        Column {
            name: row.get(0),
            is_required: row.get(1),
            comment: row.get(2),
            kind,
            labels,
            enum_name: row.get(5),
        }
    };
    rows.iter().map(column).collect()
}

async fn documents(client: &Client) -> (String, String) {
    let (mut tables, mut enums) = (String::new(), Vec::new());
    let mut statements = "-- The exportable tables for your own database: plain types, \
        no keys. Generated from the schema; what the\n\
         -- columns hold is in tables.md. Load an unpacked file with: \\copy trades FROM 'FILE.csv' CSV HEADER\n"
        .to_owned();
    for table in &exportable() {
        let about = "SELECT obj_description($1::text::regclass)";
        let about: Option<String> = client.query_one(about, &[&table]).await.unwrap().get(0);
        let about = about.unwrap_or_else(|| panic!("{table} has no comment"));
        let _ = write!(tables, "\n## {table}\n\n{about}\n\n| column | type | content |\n|---|---|---|\n");
        let mut lines = Vec::new();
        for column in columns(client, table).await {
            let Column { name, is_required, comment, kind, labels, enum_name } = column;
            assert!(!comment.is_empty(), "{table}.{name} has no comment");
            let mut shown = comment.replace('|', "\\|");
            if !labels.is_empty() {
                let _ = write!(shown, "; one of [{enum_name}](#{enum_name})");
                enums.push((enum_name, labels));
            }
            let null = if is_required { "" } else { ", may be NULL" };
            let _ = writeln!(tables, "| `{name}` | {kind}{null} | {shown} |");
            let quoted = if name == "timestamp" { format!("\"{name}\"") } else { name };
            lines.push(format!("    {quoted} {kind}{}", if is_required { " NOT NULL" } else { "" }));
        }
        let _ = write!(statements, "\nCREATE TABLE {table} (\n{}\n);\n", lines.join(",\n"));
    }
    enums.sort();
    enums.dedup();
    for (name, labels) in enums {
        let _ = write!(tables, "\n### {name}\n\n`{}`\n", labels.join("`, `"));
    }
    (tables, statements)
}

/// Unit of the numbers in a column; `None` for other columns and for plain numbers. Amounts name their asset in the
/// comment, the other units follow from the name.
fn unit(column: &Column) -> Option<&'static str> {
    let Column { name, comment, .. } = column;
    if comment.contains("smallest unit") {
        let is_of = |asset| comment.contains(asset);
        return Some(match (is_of("settlement asset"), is_of("staking asset")) {
            (true, _) => "settlement asset's smallest unit",
            (_, true) => "staking asset's smallest unit",
            _ => "asset's smallest unit",
        });
    }
    if comment.contains("nanoseconds since the Unix epoch") && column.kind == "bigint" {
        return Some("nanoseconds since the Unix epoch");
    }
    match name.trim_start_matches("pending_") {
        "realised_pnl" | "unrealised_pnl" => Some("settlement asset's smallest unit"),
        "average_entry_price" => Some("10^-decimals of the settlement asset"),
        "pegged_offset" | "price" => Some("10^-decimal_places of the market"),
        "size" | "remaining" | "open_interest" => Some("10^-position_decimal_places of the market"),
        "fee" | "lp_price_range" => Some("share; 1 = 100 %"),
        "percent_of_total" => Some("percent"),
        name if name.ends_with("_price") => Some("10^-decimal_places of the market"),
        name if name.ends_with("_volume") => Some("10^-position_decimal_places of the market"),
        _ => None,
    }
}

/// The tables as services have them.
async fn dictionary(client: &Client) -> String {
    let mut tables = Vec::new();
    for table in &exportable() {
        let mut described = Vec::new();
        for column in columns(client, table).await {
            let unit = unit(&column);
            let is_factor = column.name.ends_with("_factor");
            let needs_unit = column.kind.starts_with("numeric") && !is_factor;
            assert!(unit.is_some() || !needs_unit, "{table}.{} has no unit", column.name);
            let Column { name, comment, kind, labels, .. } = column;
            let description = match labels.is_empty() {
                true => comment,
                false => format!("{comment}; one of {}", labels.join(", ")),
            };
            let unit = unit.map(str::to_owned);
            described.push(DescribedColumn { name, kind, description, unit });
        }
        tables.push(DescribedTable { table: table.to_owned(), columns: described });
    }
    serde_json::to_string_pretty(&tables).unwrap() + "\n"
}

#[tokio::test]
async fn the_generated_dictionary_and_statements_are_those_of_the_schema() {
    let (_database, client) = Database::with_client().await;
    assert_generated("libs/store/dictionary.json", &dictionary(&client).await);
    let (tables, statements) = documents(&client).await;
    assert_generated_part("docs/tables.md", "tables", &tables);
    assert_generated("docs/tables.sql", &statements);
    // The statements are those of a database without anything of ours.
    let elsewhere = format!("CREATE SCHEMA elsewhere; SET search_path = elsewhere; {statements}");
    client.batch_execute(&elsewhere).await.unwrap();
}
