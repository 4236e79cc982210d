//! The cost of a page does not depend on its depth: a page deep inside a long list reads as many buffers as
//! the first one, in both orders, with and without filters, with and without planner statistics (P13).

use std::fmt;

use futures_util::{StreamExt as _, stream};
use mesh_oracles::cursor;
use mesh_query::{ACCOUNTS, CANDLES, DELEGATIONS, MARKETS, ORDERS, POSITIONS, SUMMARIES, TRADES};
use mesh_store::{
    Filter, KeyKind, LIST_SETTINGS, List, PageRequest, PageSizes, Past, Statement, TimeUs, Value, Window,
};
use mesh_testbed::Database;
use serde_json::Value as Json;
use tokio_postgres::{Client, NoTls};

const PAGE: usize = 100;
/// Number of the deepest page that is read: the last one of 200,000 rows. A page whose cost grows with its depth would
/// read a hundred times as many buffers there as the first one.
const DEEPEST: usize = 2_000;
/// Most buffers that a page may read when no row passes its filter: some index descents.
const MAX_EMPTY_PAGE_BUFFERS: i64 = 40;

struct Long {
    list: &'static List,
    /// Number of the rows `{numbers}`.
    rows: u32,
    /// Tables, and the rows that they are filled with. `{numbers}` stands for the numbers `n` from 0 in an order
    /// unrelated to that of the list, `{start}` for a time, `{minute}` for the `n`th minute after it.
    tables: &'static [(&'static str, &'static str)],
    /// Filters that many rows pass, separated by `|`: `column=value` for each that is given; `from` and `to` are the
    /// bounds of the first key column, times in seconds. A value of one or two characters is padded to an id.
    filters: &'static str,
    /// Filters that no row passes.
    empty: &'static str,
}

/// A block of 2023-06-01, after the last candle, as of which candles are read, too.
const AFTER_CANDLES: Past = Past {
    height: 1,
    time: TimeUs(1_685_577_600_000_000),
    is_sealed: true,
    delegation_epoch: 0,
    reward_epoch: 0,
};

const LONG: [Long; 8] = [
    // 100 epochs, parties and nodes.
    Long {
        list: &DELEGATIONS,
        rows: 200_000,
        tables: &[(
            "delegations_current",
            "SELECT id(n / 100 % 100), id(n % 100), n / 2000, n, 'tx', {start}, n FROM {numbers}",
        )],
        filters: "|party_id=2a|node_id=2a|epoch_id=42",
        empty: "party_id=none|node_id=none|epoch_id=1000|party_id=2a node_id=none",
    },
    // 100,000 candles of one market and interval, and as many of another.
    Long {
        list: &CANDLES,
        rows: 100_000,
        tables: &[("trades_candle", include_str!("deep_pages/trades_candle.sql"))],
        // 2023-02-01 to 2023-03-01.
        filters: "interval=1_minute market_id=1|interval=1_minute market_id=1 from=1675209600 to=1677628799",
        empty: "interval=1_minute market_id=none",
    },
    // 120,000 groups of two rewards: 200 epochs, 20 markets, 5 assets, 6 types.
    Long {
        list: &SUMMARIES,
        rows: 240_000,
        tables: &[("rewards", include_str!("deep_pages/rewards.sql"))],
        filters: "|from=40 to=120|asset_id=3|from=40 to=120 asset_id=none,3|market_id=7|market_id=7,8|\
            market_id=7 asset_id=3",
        empty: "asset_id=none|market_id=none|from=1000 to=2000",
    },
    // 200,000 trades of two markets between 100 parties.
    Long {
        list: &TRADES,
        rows: 200_000,
        tables: &[("trades", include_str!("deep_pages/trades.sql"))],
        filters: "|from=1675209600 to=1682899199|market_id=1|buyer=2a|market_id=1 buyer=2a",
        empty: "market_id=none|buyer=none|market_id=none buyer=2a|\
            market_id=1 buyer=none from=1675209600 to=1682899199",
    },
    // 200,000 orders of 100 parties in two markets. Every other one is live; in the first market, one in ten is
    // rejected.
    Long {
        list: &ORDERS,
        rows: 200_000,
        tables: &[("orders_current", include_str!("deep_pages/orders_current.sql"))],
        filters: "|market_id=1|party_id=2a|market_id=1 party_id=2a|status=6|status=1,6|is_live=1|\
            market_id=1 is_live=1|party_id=2a is_live=1",
        empty: "market_id=none|party_id=none is_live=1|market_id=none party_id=2a|status=2,3",
    },
    // 200 parties in a thousand markets, and 800 more in one of these.
    Long {
        list: &POSITIONS,
        rows: 1_000_000,
        tables: &[("positions_current", include_str!("deep_pages/positions_current.sql"))],
        filters: "|party_id=2a|market_id=2a",
        empty: "party_id=none|market_id=none|party_id=2a market_id=none",
    },
    // 20,000 markets with ten rows of data each; half of them settle in one asset.
    Long {
        list: &MARKETS,
        rows: 20_000,
        tables: &[
            ("markets_current", include_str!("deep_pages/markets_current.sql")),
            ("market_data", include_str!("deep_pages/market_data.sql")),
        ],
        filters: "|settlement_asset=ASSET1|state=STATE_ACTIVE",
        empty: "",
    },
    // Ten accounts of each of a hundred parties in a hundred markets, each with a balance.
    Long {
        list: &ACCOUNTS,
        rows: 100_000,
        tables: &[
            ("accounts", include_str!("deep_pages/accounts.sql")),
            ("current_balances", "SELECT 'account' || n, 'tx', {start}, n FROM {numbers}"),
        ],
        filters: "|market=2a|party_order=2a",
        empty: "party_order=none|market=none|party_order=2a market=none",
    },
];

#[tokio::test]
async fn a_page_of_any_list_costs_the_same_at_any_depth() {
    stream::iter(&LONG).for_each_concurrent(2, Long::assert_flat).await;
}

impl Long {
    /// Checks without statistics, as right after a load, and with them.
    async fn assert_flat(&self) {
        let database = Database::fresh().await;
        let client = session(&database).await;
        for (table, rows) in self.tables {
            self.fill(&client, table, rows).await;
        }
        let mut filtered = Vec::new();
        for filters in self.filters.split('|') {
            filtered.push(Filtered::new(&client, self.list, filters).await);
        }
        for statistics in [false, true] {
            println!("with statistics: {statistics}");
            if statistics {
                client.batch_execute("ANALYZE").await.unwrap();
            }
            for list in &filtered {
                list.assert_flat(&client, None).await;
            }
            if self.list.name == CANDLES.name {
                filtered[0].assert_flat(&client, Some(&AFTER_CANDLES)).await;
            }
            for filters in self.empty.split('|').filter(|_| !self.empty.is_empty()) {
                let empty = Filtered { list: self.list, filters, walks: Vec::new() };
                empty.assert_empty(&client, &filtered[0]).await;
            }
        }
    }

    /// Fills a table; its indexes are created after the rows, which is faster.
    async fn fill(&self, client: &Client, table: &str, rows: &str) {
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
        // The factor and the number of rows have no common divisor.
        let series = format!("generate_series(0, {}::int8 - 1) AS step", self.rows);
        let numbers = format!("(SELECT step * 618031 % {} AS n FROM {series}) AS numbers", self.rows);
        let rows = rows
            .replace("{numbers}", &numbers)
            .replace("{minute}", "({start} + n * interval '1 minute')")
            .replace("{start}", "timestamptz '2023-01-01 00:00:00+00'");
        client.batch_execute(&format!("INSERT INTO {table} {rows}")).await.unwrap();
        client.batch_execute(&makes).await.unwrap();
    }
}

/// A connection with the settings of the query service's list connections, and the function `id`.
async fn session(database: &Database) -> Client {
    let mut config: tokio_postgres::Config = database.url().parse().unwrap();
    config.options(format!("-c jit=off -c maintenance_work_mem=256MB {LIST_SETTINGS}"));
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let id = "CREATE FUNCTION id(int8) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT lpad(to_hex($1), 64, '0') $$";
    client.batch_execute(id).await.unwrap();
    client
}

/// A list with some of its filters given.
struct Filtered {
    list: &'static List,
    filters: &'static str,
    /// In both orders, requests for the first page, the second, one at a tenth of the way, and the deepest.
    walks: Vec<(&'static str, [Window; 4])>,
}

impl fmt::Display for Filtered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.list.name, self.filters)
    }
}

impl Filtered {
    async fn new(client: &Client, list: &'static List, filters: &'static str) -> Self {
        let mut filtered = Self { list, filters, walks: Vec::new() };
        let keys: Vec<_> = list.key.iter().map(|column| column.name).collect();
        let grouping = if list.is_grouped { format!("GROUP BY {}", keys.join(", ")) } else { String::new() };
        let rows = format!("FROM {} WHERE {}", list.table, filtered.condition());
        let count = format!("SELECT count(*) FROM (SELECT {rows} {grouping}) AS rows");
        let total: i64 = client.query_one(&count, &[]).await.unwrap().get(0);
        let total = usize::try_from(total).unwrap();
        assert!(total >= 10 * PAGE, "{filtered}: {total} rows are too few to try");
        let deepest = DEEPEST.min(total / PAGE);
        for (name, descending) in [("newest first", true), ("oldest first", false)] {
            let mut windows = Vec::new();
            for page in [0, 1, deepest / 10 - 1, deepest - 1] {
                let after = match page {
                    0 => None,
                    _ => Some(filtered.cursor(client, &rows, (page * PAGE, total), descending).await),
                };
                let (after, newest_first) = (after.as_deref(), Some(descending));
                let request = PageRequest { after, newest_first, ..PageRequest::default() };
                let sizes = PageSizes { default: PAGE, greatest: PAGE };
                windows.push(Window::read(list, request, sizes).unwrap());
            }
            filtered.walks.push((name, windows.try_into().unwrap()));
        }
        filtered
    }

    /// The cursor of the last row of so many, found with OFFSET from the nearer end of the list.
    async fn cursor(
        &self,
        client: &Client,
        rows: &str,
        (count, total): (usize, usize),
        descending: bool,
    ) -> String {
        let (above, below) = (count - 1, total - count);
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
            "SELECT ARRAY[{texts}] FROM (SELECT {keys} {rows} GROUP BY {keys} ORDER BY {} OFFSET {} LIMIT 1) AS row",
            order.join(", "),
            above.min(below)
        );
        let key: Vec<String> = client.query_one(&query, &[]).await.unwrap().get(0);
        cursor(self.list.name, &key)
    }

    fn values(&self) -> Vec<Option<Value>> {
        let mut given: Vec<(&str, &str)> =
            self.filters.split_whitespace().map(|given| given.split_once('=').unwrap()).collect();
        let mut value_of = |filter: &Filter| {
            let name = match filter {
                Filter::Equal(column)
                | Filter::AnyOf(column)
                | Filter::Flag(column)
                | Filter::EitherOf([column, _]) => column,
                Filter::AtLeast => "from",
                Filter::AtMost => "to",
                Filter::Matches(condition) => condition.split(' ').next().unwrap(),
            };
            let place = given.iter().position(|(given, _)| *given == name)?;
            Some(self.value(filter, name, given.swap_remove(place).1))
        };
        let values = self.list.filters.iter().map(&mut value_of).collect();
        assert!(given.is_empty(), "{self}: there is no filter {given:?}");
        values
    }

    fn value(&self, filter: &Filter, name: &str, text: &str) -> Value {
        let id = |text: &str| if text.len() <= 2 { format!("{text:0>64}") } else { text.to_owned() };
        let column =
            if matches!(filter, Filter::AtLeast | Filter::AtMost) { self.list.key[0].name } else { name };
        let kind = self.list.key.iter().find(|key| key.name == column).map(|key| key.kind);
        match (filter, kind) {
            (Filter::Flag(_), _) => Value::Small(1),
            (Filter::AnyOf("status"), _) => {
                Value::Smalls(text.split(',').map(|number| number.parse().unwrap()).collect())
            }
            (Filter::AnyOf(_), _) => Value::Texts(text.split(',').map(id).collect()),
            (_, Some(KeyKind::Integer)) => Value::Integer(text.parse().unwrap()),
            (_, Some(KeyKind::Time)) => Value::Time(TimeUs(text.parse::<i64>().unwrap() * 1_000_000)),
            (_, Some(KeyKind::Party)) => Value::party(&id(text)),
            (_, Some(KeyKind::Text) | None) => Value::Text(id(text)),
        }
    }

    /// The condition on rows of the table with which this test finds positions.
    fn condition(&self) -> String {
        let first = self.list.key[0].name;
        let given = self.list.filters.iter().zip(self.values());
        let given = given.filter_map(|(filter, value)| Some((filter, value?.to_literal())));
        let conditions = given.map(|(filter, value)| match filter {
            Filter::Equal(column) => format!("{column} = {value}"),
            Filter::AnyOf(column) => format!("{column} = ANY ({value})"),
            Filter::Flag(column) => (*column).to_owned(),
            Filter::EitherOf([one, other]) => format!("({one} = {value} OR {other} = {value})"),
            Filter::AtLeast => format!("{first} >= {value}"),
            Filter::AtMost => format!("{first} <= {value}"),
            Filter::Matches(condition) => condition.replace('$', &value),
        });
        ["true".to_owned()].into_iter().chain(conditions).collect::<Vec<_>>().join(" AND ")
    }

    /// Reads a page; returns the number of rows and of buffers read.
    async fn read(&self, client: &Client, window: &Window, past: Option<&Past>) -> (usize, i64) {
        let Statement { sql, parameters } = self.list.statement(window, self.values(), past);
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
    async fn assert_flat(&self, client: &Client, past: Option<&Past>) {
        for (order, [first, second, windows @ ..]) in &self.walks {
            // As of a block, a page from a cursor looks twice for the candle that ran then, the first page once.
            let first = if past.is_some() { second } else { first };
            let mut read = Vec::new();
            for window in [first].into_iter().chain(windows) {
                let (rows, buffers) = self.read(client, window, past).await;
                assert!(rows >= PAGE, "{self}: a page has {rows} rows");
                read.push(buffers);
            }
            let name = format!("{self}{}, {order}", past.map_or("", |_| " as of a block"));
            println!("{name}: pages read {read:?} buffers");
            assert!(read.iter().all(|deep| (deep - read[0]) * 10 <= read[0]), "{name}: {read:?} buffers");
        }
    }

    /// Asserts that a filter that no row passes reads at most [`MAX_EMPTY_PAGE_BUFFERS`] buffers from any
    /// position.
    async fn assert_empty(&self, client: &Client, unfiltered: &Self) {
        for window in unfiltered.walks.iter().flat_map(|(_, windows)| windows) {
            let (rows, buffers) = self.read(client, window, None).await;
            assert_eq!(rows, 1, "{self}: one row that holds the head alone");
            assert!(buffers <= MAX_EMPTY_PAGE_BUFFERS, "{self}: {buffers} buffers");
        }
    }
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
