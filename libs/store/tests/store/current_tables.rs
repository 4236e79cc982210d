//! The tables of newest rows are correct for history in any order (I3), and the head is announced.

use std::path::Path;

use futures_util::{StreamExt, future::try_join_all};
use mesh_loader::{BlockWriter, LoadError, load::load_folder};
use mesh_store::{append::Appender, error::StoreError};
use mesh_testbed::Database;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// Each history table, the table of its newest rows, and the query that recomputes that from history. In the file a
/// line `-- <history table>: <table of its newest rows>` stands before each query.
fn recomputed() -> [(&'static str, &'static str, &'static str); 12] {
    let parts = include_str!("newest_rows.sql").split("\n-- ").skip(1).map(|part| {
        let (tables, query) = part.split_once('\n').unwrap();
        let (table, newest) = tables.split_once(": ").unwrap();
        (table, newest, query.trim_end().trim_end_matches(';'))
    });
    parts.collect::<Vec<_>>().try_into().unwrap()
}

/// The time of a block, as SQL.
fn block_time(height: u32) -> String {
    format!("timestamptz '2024-01-01 00:00:00+00' + {height} * interval '1.5 seconds'")
}

/// A random row for `table`: the sort key of its primary key, and the row as SQL. Few keys and few blocks, so
/// that keys collide often.
fn row(table: &str, random: &mut SmallRng) -> ((u32, u32, u32), String) {
    let height = random.random_range(1..60);
    let time = block_time(height);
    let (a, b, value) =
        (random.random_range(0..4), random.random_range(0..3), random.random_range(-9..1_000_000_i32));
    let seq_num = random.random_range(0..5);
    match table {
        "blocks" => ((height, 0, 0), format!("({time}, {height}, 'hash{height}')")),
        "balances" => ((height, a, b), format!("('account{a}{b}', {time}, 'tx{value}', {value})")),
        "delegations" => (
            (height, seq_num, 0),
            format!("('party{a}', 'node{b}', {}, {value}, 'tx', {time}, {seq_num})", value % 3),
        ),
        "network_parameters" => ((height, a, 0), format!("('key.{a}', 'value {value}', 'tx', {time})")),
        "assets" => (
            (a, height, 0),
            format!(
                "('asset{a}', '{value}', 's', {b}, {value}, '', NULL, 0, 0, 'STATUS_ENABLED', 'tx', {time})"
            ),
        ),
        "markets" => {
            let future = format!("{{\"quoteName\": \"{value}\", \"settlementAsset\": \"asset{b}\"}}");
            let instrument = format!("{{\"instrument\": {{\"code\": \"code{b}\", \"future\": {future}}}}}");
            let unused = "NULL, NULL, NULL, NULL";
            let rest = format!("NULL, 'STATE_ACTIVE', '{{\"open\": {}}}'", value.abs() + 1);
            (
                (a, height, 0),
                format!("('market{a}', 'tx', {time}, '', '{instrument}', {b}, {unused}, {rest}, NULL)"),
            )
        }
        "positions" => {
            let pending = format!("{value}, 1.5, {value}.25, 5, 6, 7, 'POSITION_STATUS_DISTRESSED'");
            let held = format!("{value}, {value}.5, 0, 1, 2, 3, 4");
            ((height, a, b), format!("('market{b}', 'party{a}', {held}, 'tx', {time}, {pending})"))
        }
        "orders" => {
            let (status, force, remaining) = (value.abs() % 9, value.abs() % 7, value.abs() % 3);
            let numbers =
                format!("1, {value}, 9, {remaining}, {force}, 1, {status}, NULL, 0, {b}, 0, 5, 1, NULL");
            let rest = format!("{time}, NULL, NULL, 'tx', {time}, {seq_num}, false, true");
            ((height, seq_num, 0), format!("('order{a}', 'market{a}', 'party{a}', {numbers}, {rest})"))
        }
        "deposits" => (
            (a, height, 0),
            format!(
                "('deposit{a}', 'STATUS_OPEN', 'party{a}', 'asset', {value}, '', {time}, {time}, 'tx', {time})"
            ),
        ),
        "withdrawals" => (
            (a, height, 0),
            format!(
                "('w{a}', 'party{a}', {value}, 'a', 'STATUS_OPEN', '', '', {time}, {time}, '{{}}', 'tx', {time})"
            ),
        ),
        _ => (
            (height, a, b),
            format!(
                "({a}, 'v0.{b}', '{{\"node{value}\"}}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'tx', {time})"
            ),
        ),
    }
}

async fn assert_equal_to_recomputation(client: &Client, table: &str, newest: &str, recomputed: &str) {
    let difference = format!(
        "SELECT count(*) FROM (
             (TABLE {newest} EXCEPT ALL ({recomputed})) UNION ALL (({recomputed}) EXCEPT ALL TABLE {newest})
         ) AS difference"
    );
    let different: i64 = client.query_one(&difference, &[]).await.unwrap().get(0);
    assert_eq!(different, 0, "{newest} is not what {table} says");
}

#[tokio::test]
async fn nothing_is_written_where_triggers_are_switched_off() {
    let of_database = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$";
    for switch_off in [of_database, "ALTER TABLE orders DISABLE TRIGGER USER"] {
        let database = Database::fresh().await;
        database.connect().await.batch_execute(switch_off).await.unwrap();
        let loaded = load_folder(database.url(), Path::new("/"), |_, _, _| ()).await;
        assert!(matches!(loaded, Err(LoadError::Store(StoreError::NoTriggers))), "{loaded:?}");
        let appender = Appender::connect(database.url()).await;
        assert!(matches!(appender, Err(StoreError::NoTriggers)), "{appender:?}");
        let mut client = database.connect().await;
        let writer = BlockWriter::begin(&mut client).await;
        assert!(matches!(writer, Err(LoadError::Store(StoreError::NoTriggers))));
    }
}

#[tokio::test]
async fn newest_rows_equal_a_recomputation_after_random_inserts_repeats_and_old_rows() {
    let (_database, client) = Database::with_client().await;
    for seed in 0..4 {
        let mut random = SmallRng::seed_from_u64(seed);
        for (table, newest, recomputed) in recomputed() {
            let mut rows: Vec<String> = (0..300).map(|_| row(table, &mut random).1).collect();
            rows.extend_from_within(..100);
            rows.shuffle(&mut random);
            while !rows.is_empty() {
                let statement = rows.split_off(rows.len() - random.random_range(1..=rows.len().min(40)));
                let insert =
                    format!("INSERT INTO {table} VALUES {} ON CONFLICT DO NOTHING", statement.join(", "));
                client.batch_execute(&insert).await.unwrap();
                assert_equal_to_recomputation(&client, table, newest, recomputed).await;
            }
        }
    }
}

/// The definition of a market is the network's own JSON: any content is stored.
#[tokio::test]
async fn a_market_with_a_strange_definition_is_listed_without_what_is_not_in_it() {
    let (_database, client) = Database::with_client().await;
    for (number, (instrument, times)) in [
        ("NULL", "NULL"),
        ("'null'", "'null'"),
        ("'[]'", "'7'"),
        (r#"'{"instrument": 7}'"#, r#"'{"open": null}'"#),
        (r#"'{"instrument": {"code": 7, "name": {}, "a": 1, "b": []}}'"#, r#"'{"open": "soon"}'"#),
        (r#"'{"instrument": [{"code": "x"}]}'"#, r#"'{"open": 9223372036854775808}'"#),
        (r#"'{"instrument": {"metadata": {"tags": ["x"]}}}'"#, r#"'{"open": -6795364578871345152}'"#),
        (r#"'{"instrument": {"spot": {"quoteName": null}}}'"#, r#"'{"open": 1.5}'"#),
    ]
    .into_iter()
    .enumerate()
    {
        let columns = "id, tx_hash, block_time, tradable_instrument, market_timestamps";
        let insert =
            format!("INSERT INTO markets ({columns}) VALUES ('{number}', '', now(), {instrument}, {times})");
        client.batch_execute(&insert).await.unwrap_or_else(|error| panic!("{instrument} {times}: {error:?}"));
    }
    let rows = client
        .query("SELECT quote_name || settlement_asset, opened_at_ns FROM markets_current", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!((row.get::<_, &str>(0), row.get::<_, Option<i64>>(1)), ("", None));
    }
}

#[tokio::test]
async fn newest_rows_are_right_under_concurrent_writers() {
    let database = Database::fresh().await;
    let mut writers = Vec::new();
    for seed in 0..4 {
        let client = database.connect().await;
        writers.push(tokio::spawn(async move {
            let mut random = SmallRng::seed_from_u64(100 + seed);
            for _ in 0..40 {
                for (table, ..) in recomputed() {
                    let mut rows: Vec<_> = (0..20).map(|_| row(table, &mut random)).collect();
                    // Two writers that insert the same keys of history in two orders can deadlock there; this
                    // test is of the triggers alone.
                    rows.sort();
                    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
                    let insert =
                        format!("INSERT INTO {table} VALUES {} ON CONFLICT DO NOTHING", rows.join(", "));
                    client.batch_execute(&insert).await.unwrap();
                }
            }
        }));
    }
    try_join_all(writers).await.unwrap();
    let client = database.connect().await;
    for (table, newest, recomputed) in recomputed() {
        assert_equal_to_recomputation(&client, table, newest, recomputed).await;
    }
}

#[tokio::test]
async fn an_advancing_head_is_announced_once_per_statement() {
    let database = Database::fresh().await;
    let (listener, mut connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    let mut messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
    let (sender, mut heights) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(note) = message {
                sender.send((note.channel().to_owned(), note.payload().to_owned())).unwrap();
            }
        }
    });
    listener.batch_execute("LISTEN mesh_head").await.unwrap();

    let client = database.connect().await;
    for statement in [[5, 7, 6].as_slice(), &[3], &[1, 2], &[9], &[8], &[10, 4]] {
        let rows: Vec<String> =
            statement.iter().map(|height| format!("({}, {height}, 'h')", block_time(*height))).collect();
        client.batch_execute(&format!("INSERT INTO blocks VALUES {}", rows.join(", "))).await.unwrap();
    }
    client.batch_execute("INSERT INTO blocks SELECT * FROM blocks ON CONFLICT DO NOTHING").await.unwrap();
    client.batch_execute("NOTIFY mesh_head, 'end'").await.unwrap();
    let mut notifications = Vec::new();
    loop {
        let next = tokio::time::timeout(std::time::Duration::from_secs(10), heights.recv()).await;
        let (channel, payload) = next.expect("a notification").unwrap();
        assert_eq!(channel, "mesh_head");
        if payload == "end" {
            break;
        }
        notifications.push(payload);
    }
    assert_eq!(notifications, ["7", "9", "10"]);
}
