//! Reads pages of a list at several depths and compares the buffers that PostgreSQL reads for them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mesh_store::{KeyKind, LIST_SETTINGS, List, PageRequest, PageSizes, Past, Statement, Value, Window};
use mesh_testbed::Database;
use serde_json::{Value as Json, json};
use tokio_postgres::{Client, NoTls};

const PAGE: usize = 100;
/// Number of the deepest page that is read: the last one of a million rows.
const DEEPEST: usize = 10_000;
/// Most buffers that a page may read when no row passes its filter: some index descents.
const MAX_EMPTY_PAGE_BUFFERS: i64 = 40;

/// A list with some of its filters given.
pub(super) struct Filtered<'a> {
    /// What the filters select, in words.
    pub(super) name: &'static str,
    pub(super) list: &'static List,
    pub(super) filters: Vec<Option<Value>>,
    /// The block as of which it is read.
    pub(super) past: Option<Past>,
    pub(super) table: &'static str,
    /// The condition on rows of the table with which this test finds positions.
    pub(super) rows: &'a str,
    /// Number of rows of the list.
    pub(super) total: usize,
}

impl fmt::Display for Filtered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.list.name, self.name)
    }
}

/// A connection with the settings of the query service's list connections.
async fn session(database: &Database) -> Client {
    let mut config: tokio_postgres::Config = database.url().parse().unwrap();
    config.options(format!("-c jit=off {LIST_SETTINGS}"));
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Fills a table; its indexes are created after the rows, which is faster.
pub(super) async fn fill(client: &Client, table: &str, rows: &str) {
    let query = "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), conname::text
        FROM pg_index LEFT JOIN pg_constraint ON conindid = indexrelid WHERE indrelid = $1::text::regclass";
    let (mut drops, mut makes) = (String::new(), String::new());
    for row in client.query(query, &[&table]).await.unwrap() {
        let (index, definition): (String, String) = (row.get(0), row.get(1));
        makes.push_str(&format!("{definition};"));
        drops.push_str(&match row.get::<_, Option<String>>(2) {
            Some(constraint) => format!("ALTER TABLE {table} DROP CONSTRAINT {constraint};"),
            None => format!("DROP INDEX {index};"),
        });
    }
    client.batch_execute(&drops).await.unwrap();
    client
        .batch_execute(&format!("SET maintenance_work_mem = '256MB'; INSERT INTO {table} {rows}"))
        .await
        .unwrap();
    client.batch_execute(&makes).await.unwrap();
}

impl Filtered<'_> {
    /// The request for a page. The row before it is found with OFFSET from the nearer end of the list.
    async fn window(&self, client: &Client, descending: bool, page: usize) -> Window {
        let cursor = match page {
            0 => None,
            _ => Some(self.cursor(client, descending, page).await),
        };
        let request = PageRequest {
            first: Some(i32::try_from(PAGE).unwrap()),
            after: cursor.as_deref(),
            newest_first: Some(descending),
            ..PageRequest::default()
        };
        Window::read(self.list, request, PageSizes { default: PAGE, greatest: PAGE }).unwrap()
    }

    async fn cursor(&self, client: &Client, descending: bool, page: usize) -> String {
        let (above, below) = (page * PAGE - 1, self.total - page * PAGE);
        let order = if descending == (above <= below) { " DESC" } else { "" };
        let keys: Vec<_> = self.list.key.iter().map(|column| column.name).collect();
        let order: Vec<_> = keys.iter().map(|key| format!("{key}{order}")).collect();
        let texts = self.list.key.iter().map(|column| match column.kind {
            KeyKind::Time => format!("(extract(epoch FROM {0}) * 1000000000)::int8::text", column.name),
            KeyKind::Integer | KeyKind::Text => format!("{}::text", column.name),
            KeyKind::Party => format!("coalesce(nullif(substr({}, 2), ''), 'network')", column.name),
        });
        let (keys, texts) = (keys.join(", "), texts.collect::<Vec<_>>().join(", "));
        let query = format!(
            "SELECT ARRAY[{texts}] FROM (SELECT {keys} FROM {} WHERE {} GROUP BY {keys} ORDER BY {} OFFSET {} LIMIT 1) AS row",
            self.table,
            self.rows,
            order.join(", "),
            above.min(below)
        );
        let key: Vec<String> = client.query_one(&query, &[]).await.unwrap().get(0);
        URL_SAFE_NO_PAD.encode(json!({ "o": self.list.name, "k": key }).to_string())
    }

    /// Reads a page; returns the number of rows and of buffers read.
    async fn read(&self, client: &Client, window: &Window) -> (usize, i64) {
        let Statement { sql, parameters } =
            self.list.statement(window, self.filters.clone(), self.past.as_ref());
        client.batch_execute(&format!("DEALLOCATE ALL; PREPARE page AS {sql}")).await.unwrap();
        let arguments: Vec<_> = parameters.iter().map(Value::to_literal).collect();
        let explain =
            format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page({})", arguments.join(", "));
        let plan: Json = client.query_one(&explain, &[]).await.unwrap().get(0);
        let plan = &plan[0]["Plan"];
        assert_walks_indexes(plan, &self.to_string());
        // From PostgreSQL 18 on, rows are counted with a fraction.
        let number = |name: &str| plan[name].as_f64().unwrap() as i64;
        let rows = usize::try_from(number("Actual Rows")).unwrap();
        (rows, number("Shared Hit Blocks") + number("Shared Read Blocks"))
    }

    /// Asserts that a further and the deepest page read at most a tenth more buffers than the first.
    async fn assert_flat(&self, client: &Client) {
        let deepest = DEEPEST.min(self.total / PAGE);
        // As of a block, a page from a cursor looks twice for the candle that ran then, the first page once.
        let first = if self.past.is_some() { 2 } else { 1 };
        let pages = [first, deepest / 10, deepest];
        for descending in [true, false] {
            let mut read = Vec::new();
            for page in pages {
                let window = self.window(client, descending, page - 1).await;
                let (rows, buffers) = self.read(client, &window).await;
                assert!(rows >= PAGE, "{self}: page {page} has {rows} rows");
                read.push(buffers);
            }
            let order = if descending { "newest first" } else { "oldest first" };
            println!("{self}, {order}: pages {pages:?} read {read:?} buffers");
            let flat = read.iter().all(|deep| (deep - read[0]) * 10 <= read[0]);
            assert!(flat, "{self}, {order}: {read:?} buffers");
        }
    }

    /// Asserts that a filter that no row passes reads at most [`MAX_EMPTY_PAGE_BUFFERS`] buffers from any
    /// position.
    async fn assert_empty(&self, client: &Client, unfiltered: &Filtered<'_>) {
        for descending in [true, false] {
            for page in [0, 50] {
                let window = unfiltered.window(client, descending, page).await;
                let (rows, buffers) = self.read(client, &window).await;
                assert_eq!(rows, 1, "{self}: one row that holds the head alone");
                assert!(buffers <= MAX_EMPTY_PAGE_BUFFERS, "{self}: {buffers} buffers");
            }
        }
    }
}

/// A text of 64 characters that ends with these.
pub(super) fn id(end: &str) -> Value {
    Value::Text(format!("{end:0>64}"))
}

pub(super) fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.to_owned()))
}

/// Asserts that the executed plan has no sequential scan, except of the head table, which has one row, and of empty
/// tables.
fn assert_walks_indexes(node: &Json, name: &str) {
    if node["Actual Loops"] == 0 || node["Shared Hit Blocks"] == 0 && node["Shared Read Blocks"] == 0 {
        return;
    }
    let kind = node["Node Type"].as_str().unwrap();
    let allowed = kind != "Seq Scan" && kind != "Bitmap Heap Scan" || node["Relation Name"] == "last_block";
    assert!(allowed, "{name}: {kind} on {}", node["Relation Name"]);
    for child in node["Plans"].as_array().into_iter().flatten() {
        assert_walks_indexes(child, name);
    }
}

/// Checks without statistics, as right after a load, and with them.
pub(super) async fn assert_flat(database: &Database, lists: &[Filtered<'_>], empty: &[Filtered<'_>]) {
    let client = session(database).await;
    for statistics in [false, true] {
        println!("with statistics: {statistics}");
        if statistics {
            client.batch_execute("ANALYZE").await.unwrap();
        }
        for list in lists {
            list.assert_flat(&client).await;
        }
        for list in empty {
            list.assert_empty(&client, &lists[0]).await;
        }
    }
}
