//! The recipes of docs/recipes.md, run as they stand there: what each tool makes of the downloads equals what the
//! gateway's own tables hold. Tools that are not installed are skipped with a message.

use std::{fs, path::Path, process::Command};

use mesh_testbed::{Database, Mesh};
use mesh_tests::{Copier, MeshClient, fixture, is_here, programs::output, say, zip};
use serde_json::Value;

use super::handmade::{CHAIN, HandmadeSegments, Plan};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Columns that the first segment's schema does not have yet, of rows in which they are NULL.
const LATER: [(&str, &str); 2] = [("trades", "seller_auction_batch"), ("orders", "lp_id")];

/// How a table of each tool is read, behind its recipe and before `recipes/made.py`.
const TOOLS: [(&str, &str, &str); 3] = [
    ("DuckDB", "sql", include_str!("recipes/of_duckdb.py")),
    ("polars", "python", include_str!("recipes/of_polars.py")),
    ("pandas", "python", include_str!("recipes/of_pandas.py")),
];

/// The code blocks of a language below a heading of the recipes.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    blocks_of("recipes.md", heading, language)
}

fn blocks_of(document: &str, heading: &str, language: &str) -> Vec<String> {
    let document = fs::read_to_string(Path::new(DOCS).join(document)).unwrap();
    let (_, behind) = document.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = behind.split("\n## ").next().unwrap();
    let opening = format!("```{language}\n");
    let blocks = section.split(&opening).skip(1).map(|block| block.split("\n```").next().unwrap().to_owned());
    let blocks: Vec<_> = blocks.collect();
    assert!(!blocks.is_empty(), "{heading} has no {language}");
    blocks
}

/// A mesh over the fixture with the rows of `recipes/rows.sql`; its history is in two segments of different schemas.
async fn served() -> (HandmadeSegments, Database, Mesh) {
    let database = fixture::database().await;
    let client = database.connect().await;
    client.batch_execute(include_str!("recipes/rows.sql")).await.unwrap();
    client.execute("UPDATE chain SET id = $1", &[&CHAIN]).await.unwrap();
    let copier = Copier::open(&database).await;
    let mut plans = vec![Plan::new(1, 1, 2), Plan::new(2, 3, 3)];
    for (table, later) in LATER {
        let named = "SELECT string_agg(quote_ident(column_name), ',' ORDER BY ordinal_position)
            FROM information_schema.columns WHERE table_name = $1 AND table_schema = 'public' AND column_name <> $2";
        let columns: String = client.query_one(named, &[&table, &later]).await.unwrap().get(0);
        let last = "(SELECT block_time FROM blocks WHERE height = 3)";
        let early =
            format!("SELECT {columns} FROM {table} WHERE block_time < {last} ORDER BY block_time, seq_num");
        let late = format!("SELECT * FROM {table} WHERE block_time = {last} ORDER BY block_time, seq_num");
        plans[0].tables.push((table, copier.query(&early).await));
        plans[1].tables.push((table, copier.query(&late).await));
    }
    let segments = HandmadeSegments::write(plans).await;
    let setup = Mesh::configure(&database);
    let mesh = setup.env("MESH_HISTORY_URL", segments.folder.path().to_str().unwrap()).start().await;
    (segments, database, mesh)
}

/// Runs the block that downloads, in a folder, and unpacks the ZIPs.
async fn download(folder: &Path, gateway: &str) {
    let blocks = blocks("Download", "sh");
    let shell = |block: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-euc", block]).current_dir(folder);
        shell.env("GATEWAY", gateway).env("FROM", "1").env("TO", "3");
        shell.env("PARTY", fixture::PARTY).env("ASSET", fixture::ASSET);
        shell
    };
    output(&mut shell(&blocks[0]));
    if is_here("unzip") {
        output(&mut shell(&blocks[1]));
        return;
    }
    say("there is no unzip: the test unpacks the recipes' downloads itself");
    for (table, _) in LATER {
        fs::create_dir(folder.join(table)).unwrap();
        for (name, text) in zip::members(&fs::read(folder.join(format!("{table}.zip"))).unwrap()).await {
            fs::write(folder.join(table).join(name), text).unwrap();
        }
    }
}

/// The rows of each table, in one order.
fn sorted(mut made: Value) -> Value {
    for (_, rows) in made.as_object_mut().unwrap() {
        rows.as_array_mut().unwrap().sort_by_key(Value::to_string);
    }
    made
}

fn assert_made(tool: &str, made: Value, expected: &Value) {
    let made = sorted(made);
    for (table, rows) in expected.as_object().unwrap() {
        let (rows, made) = (rows.as_array().unwrap(), made[table].as_array().unwrap());
        assert_eq!(made.len(), rows.len(), "{tool}: rows of {table}");
        for (made, row) in made.iter().zip(rows) {
            assert_eq!(made, row, "{tool}: {table}");
        }
    }
}

fn python() -> String {
    std::env::var("MESH_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Runs what the first ten minutes do with DuckDB: the newest trades of a market, with its name.
fn first_ten_minutes(folder: &Path, gateway: &str) {
    const DEMO: [&str; 2] =
        ["http://127.0.0.1:8080", "54b92e25c8a3bfc9ea331cc9462bfd97dcdfc8f0b8df36c142237dee19c2850b"];
    let typed = fs::read_to_string(Path::new(DOCS).join("first-ten-minutes.md")).unwrap();
    let typed = typed.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| line.contains(" -o "));
    for line in typed {
        let line = line.replace(DEMO[0], gateway).replace(DEMO[1], fixture::MARKET);
        output(Command::new("sh").args(["-euc", &line]).current_dir(folder));
    }
    let script = &blocks_of("first-ten-minutes.md", "4. Make a table of the last trades", "python")[0];
    let table = output(Command::new(python()).args(["-Xutf8", "-c", script]).current_dir(folder));
    // A price and a size with the decimals of their market, 5 and 3.
    for text in ["BTC/USD", "0.0101", "0.012", "SIDE_BUY", "2023-06-20 10:59:59.120456"] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

/// What the recipe of a tool makes; `None` where there is no Python that has it.
fn in_python(folder: &Path, (tool, language, reading): (&str, &str, &str)) -> Option<Value> {
    let python = python();
    let mut import = Command::new(&python);
    import.arg("-c").arg(match tool {
        "pandas" => "import pandas, pyarrow".to_owned(),
        _ => format!("import {}", tool.to_lowercase()),
    });
    if !import.output().is_ok_and(|output| output.status.success()) {
        say(&format!(
            "skipped: the recipe for {tool}, because {python} does not have it (MESH_TEST_PYTHON names another)"
        ));
        return None;
    }
    let recipe = blocks(tool, language).concat();
    fs::write(folder.join("recipe"), &recipe).unwrap();
    let recipe = if language == "python" { recipe } else { String::new() };
    let script = folder.join("recipe.py");
    fs::write(&script, [&recipe, "\n", reading, include_str!("recipes/made.py")].concat()).unwrap();
    let said = output(Command::new(&python).arg("-Xutf8").arg(&script).current_dir(folder));
    let made = said.lines().find_map(|line| line.strip_prefix("made ")).unwrap();
    Some(serde_json::from_str(made).unwrap())
}

/// What the recipe for PostgreSQL makes in an empty database; `None` without psql.
async fn in_postgres(folder: &Path) -> Option<Value> {
    if !is_here("psql") {
        say("skipped: the recipe for PostgreSQL, because there is no psql");
        return None;
    }
    let database = Database::empty().await;
    let address: tokio_postgres::Config = database.url().parse().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-euc", &blocks("PostgreSQL", "sh").concat()]).current_dir(folder);
    shell.env("TABLES", format!("{DOCS}/tables.sql"));
    let host = match &address.get_hosts()[0] {
        tokio_postgres::config::Host::Tcp(host) => host.clone(),
        tokio_postgres::config::Host::Unix(folder) => folder.to_str().unwrap().to_owned(),
    };
    shell.env("PGHOST", host).env("PGPORT", address.get_ports()[0].to_string());
    shell.env("PGUSER", address.get_user().unwrap()).env("PGDATABASE", address.get_dbname().unwrap());
    if let Some(password) = address.get_password() {
        shell.env("PGPASSWORD", String::from_utf8(password.to_owned()).unwrap());
    }
    output(&mut shell);
    Some(database.connect().await.query_one(include_str!("recipes/made.sql"), &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn every_recipe_makes_what_the_gateways_own_tables_hold() {
    if !is_here("curl") {
        say("skipped: the recipes of docs/recipes.md, because there is no curl");
        return;
    }
    let (_segments, database, mesh) = served().await;
    let client = database.connect().await;
    let arguments: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&fixture::PARTY, &fixture::ASSET];
    let expected: Value =
        client.query_one(include_str!("recipes/expected.sql"), &arguments).await.unwrap().get(0);
    let expected = sorted(expected);
    let folder = tempfile::tempdir().unwrap();
    let mesh_client = MeshClient::new(&mesh);
    download(folder.path(), mesh_client.url()).await;
    if let Some(made) = in_postgres(folder.path()).await {
        assert_made("PostgreSQL", made, &expected);
    }
    for tool in TOOLS {
        if let Some(made) = in_python(folder.path(), tool) {
            assert_made(tool.0, made, &expected);
            if tool.0 == "DuckDB" {
                first_ten_minutes(folder.path(), mesh_client.url());
            }
        }
    }
}
