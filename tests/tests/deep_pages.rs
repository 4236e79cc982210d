//! The cost of a page does not depend on its depth: a page deep inside a long list reads as many buffers as
//! the first one, in both orders, with and without filters, with and without planner statistics (P13).

use mesh_store::LIST_SETTINGS;
use mesh_testbed::Database;
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

const DELEGATIONS: &str = include_str!("../../services/query/sql/list_delegations.sql");
const CANDLES: &str = include_str!("../../services/query/sql/list_candle_data.sql");
const SUMMARIES: &str = include_str!("../../services/query/sql/list_epoch_reward_summaries.sql");
const SUMMARIES_BY_ASSET: &str =
    include_str!("../../services/query/sql/list_epoch_reward_summaries_by_asset.sql");
const SUMMARIES_BY_MARKET: &str =
    include_str!("../../services/query/sql/list_epoch_reward_summaries_by_market.sql");
const PROPOSALS: &str = include_str!("../../services/query/sql/list_protocol_upgrade_proposals.sql");

const PAGE: i64 = 100;
/// Number of the deepest page that is read: the last one of a million rows.
const DEEPEST: i64 = 10_000;
/// Most buffers that a page may read when no row passes its filter: some index descents.
const MAX_EMPTY_PAGE_BUFFERS: i64 = 40;

/// A list and its SQL statement. Arguments are SQL literals.
struct List {
    name: &'static str,
    sql: &'static str,
    /// The arguments before direction and size, and those after the position.
    filters: (&'static str, &'static str),
    /// `FROM` and `WHERE` with which this test finds positions.
    rows: &'static str,
    /// Number of rows of the list.
    total: i64,
    key: &'static [&'static str],
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
async fn fill(client: &Client, table: &str, rows: &str) {
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

impl List {
    /// The position of the last row of a page, or none before the first page. Found with OFFSET from the
    /// nearer end of the list.
    async fn position(&self, client: &Client, descending: bool, page: i64) -> Vec<String> {
        if page == 0 {
            return self.key.iter().map(|_| "NULL".to_owned()).collect();
        }
        let (above, below) = (page * PAGE - 1, self.total - page * PAGE);
        let order = if descending == (above <= below) { " DESC" } else { "" };
        let order: Vec<_> = self.key.iter().map(|key| format!("{key}{order}")).collect();
        let texts: Vec<_> = self.key.iter().map(|key| format!("quote_literal({key}::text)")).collect();
        let keys = self.key.join(", ");
        let query = format!(
            "SELECT {} FROM (SELECT {keys} {} GROUP BY {keys} ORDER BY {} OFFSET {} LIMIT 1) AS row",
            texts.join(", "),
            self.rows,
            order.join(", "),
            above.min(below)
        );
        let row = client.query_one(&query, &[]).await.unwrap();
        (0..self.key.len()).map(|column| row.get(column)).collect()
    }

    /// Reads a page; returns the number of rows and of buffers read.
    async fn read(&self, client: &Client, descending: bool, position: &[String]) -> (i64, i64) {
        let (before, after) = self.filters;
        let walk = format!("{descending}, {}, {}", PAGE + 1, position.join(", "));
        let arguments: Vec<_> = [before, &walk, after].into_iter().filter(|part| !part.is_empty()).collect();
        client.batch_execute(&format!("DEALLOCATE ALL; PREPARE page AS {}", self.sql)).await.unwrap();
        let explain =
            format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page({})", arguments.join(", "));
        let plan: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
        let plan = &plan[0]["Plan"];
        assert_walks_indexes(plan, self.name);
        let number = |name: &str| plan[name].as_i64().unwrap();
        (number("Actual Rows"), number("Shared Hit Blocks") + number("Shared Read Blocks"))
    }

    /// Asserts that the first, a further and the deepest page read the same number of buffers, within a
    /// tenth.
    async fn assert_flat(&self, client: &Client) {
        let deepest = DEEPEST.min(self.total / PAGE);
        let pages = [1, deepest / 10, deepest];
        for descending in [true, false] {
            let mut read = Vec::new();
            for page in pages {
                let position = self.position(client, descending, page - 1).await;
                let (rows, buffers) = self.read(client, descending, &position).await;
                assert!(rows >= PAGE, "{}: page {page} has {rows} rows", self.name);
                read.push(buffers);
            }
            let order = if descending { "newest first" } else { "oldest first" };
            println!("{}, {order}: pages {pages:?} read {read:?} buffers", self.name);
            let flat = read.iter().all(|deep| (deep - read[0]).abs() * 10 <= read[0]);
            assert!(flat, "{}, {order}: {read:?} buffers", self.name);
        }
    }

    /// Asserts that a filter that no row passes reads at most [`NEXT_TO_NOTHING`] buffers from any position.
    async fn assert_empty(&self, client: &Client, unfiltered: &List) {
        for descending in [true, false] {
            for page in [0, 50] {
                let position = unfiltered.position(client, descending, page).await;
                let (rows, buffers) = self.read(client, descending, &position).await;
                assert_eq!(rows, 1, "{}: one row that holds the head alone", self.name);
                assert!(buffers <= MAX_EMPTY_PAGE_BUFFERS, "{}: {buffers} buffers", self.name);
            }
        }
    }
}

/// Asserts that the executed plan has no sequential scan, except of the head table, which has one row.
fn assert_walks_indexes(node: &Value, name: &str) {
    if node["Actual Loops"] == 0 {
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
async fn assert_flat(database: &Database, lists: &[List], empty: &[List]) {
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

/// 100 epochs, parties and nodes; the order on disk is unrelated to that of the list.
#[tokio::test]
async fn delegations_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows =
        "SELECT lpad(to_hex(n / 100 % 100), 64, '0'), lpad(to_hex(n % 100), 64, '0'), n / 10000, n, 'tx',
            timestamptz '2023-01-01 00:00:00+00', n
        FROM (SELECT step * 618033 % 1000000 AS n FROM generate_series(0, 999999::int8) AS step) AS numbers";
    fill(&database.connect().await, "delegations_current", rows).await;
    let key: &[_] = &["epoch_id", "party_id", "node_id"];
    let list =
        |name, filter, rows, total| List { name, sql: DELEGATIONS, filters: (filter, ""), rows, total, key };
    let lists = [
        list("delegations", "NULL, NULL, NULL", "FROM delegations_current", 1_000_000),
        list(
            "delegations of a party",
            "lpad('2a', 64, '0'), NULL, NULL",
            "FROM delegations_current WHERE party_id = lpad('2a', 64, '0')",
            10_000,
        ),
        list(
            "delegations to a node",
            "NULL, lpad('2a', 64, '0'), NULL",
            "FROM delegations_current WHERE node_id = lpad('2a', 64, '0')",
            10_000,
        ),
        list(
            "delegations of an epoch",
            "NULL, NULL, 42",
            "FROM delegations_current WHERE epoch_id = 42",
            10_000,
        ),
    ];
    let empty = [
        list("delegations of nobody", "'nobody', NULL, NULL", "", 0),
        list("delegations to no node", "NULL, 'nobody', NULL", "", 0),
        list("delegations of a coming epoch", "NULL, NULL, 1000", "", 0),
        list("delegations of one to nobody", "lpad('2a', 64, '0'), 'nobody', NULL", "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

/// 200,000 candles of one market and interval, and as many of another.
#[tokio::test]
async fn candles_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows = "SELECT '1_minute', lpad(market::text, 64, '0'), time, 2, 3, 4, 1, 5, time, time
        FROM (SELECT step * 61803 % 200000 AS n FROM generate_series(0, 199999::int8) AS step) AS numbers,
            generate_series(1, 2) AS market,
            LATERAL (SELECT timestamptz '2023-01-01 00:00:00+00' + n * interval '1 minute' AS time) AS times";
    fill(&database.connect().await, "trades_candle", rows).await;
    let key: &[_] = &["period_start"];
    let list =
        |name, filter, rows, total| List { name, sql: CANDLES, filters: (filter, ""), rows, total, key };
    let lists = [
        list(
            "candles",
            "'1_minute', lpad('1', 64, '0'), NULL, NULL",
            "FROM trades_candle WHERE market_id = lpad('1', 64, '0')",
            200_000,
        ),
        list(
            "candles of some weeks",
            "'1_minute', lpad('1', 64, '0'), '2023-02-01 00:00:00+00', '2023-05-01 00:00:00+00'",
            "FROM trades_candle WHERE market_id = lpad('1', 64, '0')
                AND period_start >= '2023-02-01 00:00:00+00' AND period_start < '2023-05-01 00:00:00+00'",
            128_160,
        ),
    ];
    let empty = [list("candles of no market", "'1_minute', 'nobody', NULL, NULL", "", 0)];
    assert_flat(&database, &lists, &empty).await;
}

/// 300,000 groups of two rewards: 500 epochs, 20 markets, 5 assets, 6 types.
#[tokio::test]
async fn reward_summaries_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows =
        "SELECT 'party' || n % 2, lpad(to_hex(n / 12 % 5), 64, '0'), lpad(to_hex(n / 60 % 20), 64, '0'),
            'ACCOUNT_TYPE_' || n / 2 % 6, n / 1200, n, 0.5, timestamptz '2023-01-01 00:00:00+00', 'tx',
            timestamptz '2023-01-01 00:00:00+00', n
        FROM (SELECT step * 370801 % 600000 AS n FROM generate_series(0, 599999::int8) AS step) AS numbers";
    fill(&database.connect().await, "rewards", rows).await;
    let key: &[_] = &["epoch_id", "market_id", "asset_id", "reward_type"];
    let list = |name, sql, filters, rows, total| List { name, sql, filters, rows, total, key };
    let lists = [
        list("summaries", SUMMARIES, ("NULL, NULL", ""), "FROM rewards", 300_000),
        list(
            "summaries of epochs",
            SUMMARIES,
            ("100, 300", ""),
            "FROM rewards WHERE epoch_id BETWEEN 100 AND 300",
            120_600,
        ),
        list(
            "summaries of an asset",
            SUMMARIES_BY_ASSET,
            ("NULL, NULL", "ARRAY[lpad('3', 64, '0')]"),
            "FROM rewards WHERE asset_id = lpad('3', 64, '0')",
            60_000,
        ),
        list(
            "summaries of an asset that nobody has and one of some epochs",
            SUMMARIES_BY_ASSET,
            ("100, 300", "ARRAY['nobody', lpad('3', 64, '0')]"),
            "FROM rewards WHERE asset_id = lpad('3', 64, '0') AND epoch_id BETWEEN 100 AND 300",
            24_120,
        ),
        list(
            "summaries of a market",
            SUMMARIES_BY_MARKET,
            ("NULL, NULL", "ARRAY[lpad('7', 64, '0')], NULL"),
            "FROM rewards WHERE market_id = lpad('7', 64, '0')",
            15_000,
        ),
        list(
            "summaries of a market and an asset",
            SUMMARIES_BY_MARKET,
            ("NULL, NULL", "ARRAY[lpad('7', 64, '0')], ARRAY[lpad('3', 64, '0')]"),
            "FROM rewards WHERE market_id = lpad('7', 64, '0') AND asset_id = lpad('3', 64, '0')",
            3_000,
        ),
    ];
    let empty = [
        list("summaries of no asset", SUMMARIES_BY_ASSET, ("NULL, NULL", "ARRAY['nobody']"), "", 0),
        list("summaries of no market", SUMMARIES_BY_MARKET, ("NULL, NULL", "ARRAY['nobody'], NULL"), "", 0),
        list("summaries of coming epochs", SUMMARIES, ("1000, 2000", ""), "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

#[test]
fn p13_no_list_reads_rows_only_to_count_them() {
    for sql in [DELEGATIONS, CANDLES, SUMMARIES, SUMMARIES_BY_ASSET, SUMMARIES_BY_MARKET, PROPOSALS] {
        let statement: String = sql.lines().filter(|line| !line.starts_with("--")).collect();
        assert!(!statement.to_uppercase().contains("OFFSET"), "{sql}");
        assert!(statement.contains("LIMIT $") && statement.contains("EXISTS"), "{sql}");
    }
}
