//! `docs/tables.md` and `docs/tables.sql`: what the columns of the exportable tables hold, for analysts. Both are
//! made of the schema and its comments.

use std::fmt::Write as _;

use mesh_testbed::Database;
use tokio_postgres::Client;

const EXPORTABLE: [&str; 15] = [
    "balances",
    "blocks",
    "checkpoints",
    "delegations",
    "deposits",
    "ledger",
    "liquidity_provisions",
    "margin_levels",
    "market_data",
    "markets",
    "orders",
    "positions",
    "rewards",
    "trades",
    "withdrawals",
];

const COLUMNS: &str = "
    SELECT attname::text, attnotnull, coalesce(col_description(attrelid, attnum), ''),
        format_type(coalesce(nullif(typbasetype, 0), atttypid),
            CASE WHEN typbasetype = 0 THEN atttypmod ELSE typtypmod END),
        coalesce((SELECT array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = atttypid), '{}'),
        typname::text
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";

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
    let mut statements = "-- The exportable tables for your own database: plain types, no keys. Made of the schema; what the\n\
         -- columns hold is in tables.md. Load an unpacked file with: \\copy trades FROM 'FILE.csv' CSV HEADER\n"
        .to_owned();
    for table in EXPORTABLE {
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

#[tokio::test]
async fn the_dictionary_of_the_columns_is_what_the_schema_says() {
    let database = Database::fresh().await;
    let (tables, statements) = documents(&database.connect().await).await;
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let (dictionary, script) = (format!("{docs}/tables.md"), format!("{docs}/tables.sql"));
    let text = std::fs::read_to_string(&dictionary).unwrap_or_default();
    let mark = "<!-- tables: made of the schema, MESH_UPDATE=1 cargo test -p mesh-store dictionary -->\n";
    let (introduction, _) = text.split_once(mark).expect("the mark before the tables");
    let made = format!("{introduction}{mark}{tables}");
    if std::env::var_os("MESH_UPDATE").is_some() {
        std::fs::write(&dictionary, &made).unwrap();
        std::fs::write(&script, &statements).unwrap();
    }
    assert!(
        std::fs::read_to_string(&dictionary).unwrap() == made
            && std::fs::read_to_string(&script).unwrap_or_default() == statements,
        "docs/tables.md or docs/tables.sql is not what the schema makes: {mark}"
    );
    // The statements are those of a database without anything of ours.
    let client = database.connect().await;
    let elsewhere = format!("CREATE SCHEMA elsewhere; SET search_path = elsewhere; {statements}");
    client.batch_execute(&elsewhere).await.unwrap();
}
