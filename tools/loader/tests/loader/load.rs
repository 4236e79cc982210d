//! Loading folders of CSV files: all of a folder or nothing, every dialect PostgreSQL reads, errors with line
//! and column.

mod records;

use std::path::Path;

use mesh_loader::{
    LoadError,
    load::{LoadReport, SkipReason, load_folder},
};
use mesh_testbed::Database;
use tempfile::TempDir;

use crate::text;

const BLOCKS: &str = "block_time,height,hash\n2024-01-01 00:00:00+00,1,aa\n2024-01-01 00:00:01.5+00,2,bb\n";
/// One block, at the beginning of 2024.
const BLOCK: &str = "height,block_time,hash\n1,2024-01-01 00:00:00+00,ab\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

async fn load(database: &Database, files: &[(&str, &str)]) -> Result<LoadReport, LoadError> {
    load_folder(database.url(), folder(files).path(), |_, _, _| ()).await
}

#[tokio::test]
async fn tables_are_found_behind_another_schema_in_the_search_path() {
    let (database, client) = Database::with_client().await;
    let name = database.name();
    let sql = format!("CREATE SCHEMA other; ALTER DATABASE \"{name}\" SET search_path = other, public");
    client.batch_execute(&sql).await.unwrap();
    let report = load(&database, &[("chain.csv", "id,onerow_check\ntestnet,t\n")]).await.unwrap();
    assert_eq!(report.tables.len(), 1, "{:?}", report.skipped_files);
}

/// The message of a refused load; checks that it has stored nothing.
async fn refusal(files: &[(&str, &str)]) -> String {
    let database = Database::fresh().await;
    let error = load(&database, files).await.unwrap_err();
    assert!(matches!(error, LoadError::BadFile { .. }), "{error:?}");
    let rows = "SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM chain) + (SELECT count(*) FROM balances)
        + (SELECT count(*) FROM current_balances) + (SELECT count(*) FROM last_block)";
    let client = database.connect().await;
    assert_eq!(client.query_one(rows, &[]).await.unwrap().get::<_, i64>(0), 0);
    error.to_string()
}

#[tokio::test]
async fn a_folder_is_loaded_with_blocks_last_and_fills_the_derived_tables() {
    let database = Database::fresh().await;
    let files = folder(&[
        ("blocks.csv", BLOCKS),
        ("chain.csv", "id,onerow_check\ntestnet,t\n"),
        ("balances.csv", "account_id,block_time,tx_hash,balance\na,2024-01-01 00:00:00+00,t,5\n"),
        ("orders.csv", "id,market_id\n"),
        ("last_block.csv", "onerow_check,block_time,height,hash\nt,2020-01-01 00:00:00+00,99,zz\n"),
        ("trades_candle_1_day.csv", "market_id\n"),
        ("candles.csv", "not,read\n"),
        ("BLOCKS.CSV", "not,read\n"),
        ("README.md", "not a table"),
        ("trades.csv.gz", "not read"),
    ]);
    std::fs::create_dir(files.path().join("more")).unwrap();
    let mut steps = Vec::new();
    let report = load_folder(database.url(), files.path(), |index, total, table| {
        steps.push(format!("{index} of {total}: {table}"));
    })
    .await
    .unwrap();

    assert_eq!(steps, ["1 of 4: balances", "2 of 4: chain", "3 of 4: orders", "4 of 4: blocks"]);
    let rows: Vec<_> = report.tables.iter().map(|table| (table.table.as_str(), table.rows)).collect();
    assert_eq!(rows, [("balances", 1), ("chain", 1), ("orders", 0), ("blocks", 2)]);
    let skipped: Vec<_> = report.skipped_files.iter().map(|skip| (skip.file.as_str(), skip.reason)).collect();
    assert_eq!(
        skipped,
        [
            ("BLOCKS.CSV", SkipReason::NoSuchTable),
            ("README.md", SkipReason::NoCsv),
            ("candles.csv", SkipReason::NoSuchTable),
            ("last_block.csv", SkipReason::Derived),
            ("more", SkipReason::NoCsv),
            ("trades.csv.gz", SkipReason::NoCsv),
            ("trades_candle_1_day.csv", SkipReason::Derived),
        ]
    );
    let client = database.connect().await;
    assert_eq!(text(&client, "SELECT height || hash FROM last_block").await, "2bb");
    assert_eq!(text(&client, "SELECT balance::text FROM current_balances").await, "5");
    let rows = "SELECT reltuples::text FROM pg_class WHERE relname = 'blocks'";
    assert_eq!(text(&client, rows).await, "2", "the loaded tables have statistics");
}

#[tokio::test]
async fn columns_may_stand_in_any_order_be_unknown_or_missing() {
    let database = Database::fresh().await;
    let report = load(
        &database,
        &[
            (
                "orders.csv",
                "seq_num,\"extra, quoted\",block_time,id,market_id,party_id,side,price,size,remaining,\
                 time_in_force,type,\
                 status,version,batch_id,created_at,tx_hash,,expires_at\n\
                 7,\"a\nb\",2024-01-01 00:00:00+00,o,m,p,1,12,3,3,1,1,1,1,0,2024-01-01 00:00:00+00,t,,\n",
            ),
            ("blocks.csv", BLOCK),
            ("chain.csv", "id\ntestnet\n"),
        ],
    )
    .await
    .unwrap();
    let [chain, orders, _] = report.tables.as_slice() else { panic!("{report:?}") };
    assert_eq!((orders.rows, chain.rows), (1, 1));
    assert_eq!(orders.skipped_columns, ["extra, quoted", ""]);
    assert_eq!(chain.defaulted_columns, ["onerow_check"]);
    let defaulted = [
        "reference", "reason", "pegged_offset", "pegged_reference", "lp_id", "updated_at", "post_only",
        "reduce_only",
    ];
    assert_eq!(orders.defaulted_columns, defaulted);
    let client = database.connect().await;
    let row = "SELECT concat_ws('|', seq_num, id, price, post_only, reference IS NULL, expires_at IS NULL) FROM orders";
    assert_eq!(text(&client, row).await, "7|o|12|f|t|t");
}

#[tokio::test]
async fn null_and_empty_text_quotes_line_breaks_and_other_line_ends_are_understood() {
    let database = Database::fresh().await;
    load(
        &database,
        &[
            ("blocks.csv", BLOCK),
            (
                "network_parameters.csv",
                "\u{feff}\"key\",\"value\",\"tx_hash\",\"block_time\"\r\n\
                 a,\"\",t,2024-01-01 00:00:00+00\r\n\
                 b,\"he said \"\"x, y\"\"\r\nand \u{e9}\",t,2024-01-01 00:00:00+00\r\n\
                 c,\" NULL \",t,2024-01-01 02:00:00+02\r\n",
            ),
            (
                "accounts.csv",
                "id,party_id,asset_id,market_id,type,tx_hash,block_time\na,,x,\"\",4,t,2024-01-01 00:00:00+00",
            ),
            (
                "rewards.csv",
                "party_id,asset_id,market_id,reward_type,epoch_id,amount,percent_of_total,\"timestamp\",\
                 tx_hash,block_time,seq_num\n\
                 p,a,\"\",r,1,,0.1,2024-01-01 00:00:00,t,2024-01-01 00:00:00,0\n",
            ),
        ],
    )
    .await
    .unwrap();
    let client = database.connect().await;
    let values = "SELECT string_agg(value, '|' ORDER BY key) FROM network_parameters";
    assert_eq!(text(&client, values).await, "|he said \"x, y\"\r\nand \u{e9}| NULL ");
    let account = "SELECT concat_ws('|', party_id IS NULL, market_id = '') FROM accounts";
    assert_eq!(text(&client, account).await, "t|t");
    let times = "SELECT concat_ws('|', (SELECT count(DISTINCT block_time) FROM network_parameters),
        amount IS NULL, timestamp = '2024-01-01 00:00:00+00') FROM rewards";
    assert_eq!(text(&client, times).await, "1|t|t", "a time without a zone is UTC");
}

#[tokio::test]
async fn a_row_that_does_not_fit_is_named_with_file_and_line_and_nothing_stays() {
    const NOT_NULL: &str =
        "line 2: null value in column \"hash\" of relation \"blocks\" violates not-null constraint";
    const NO_TIME: &str =
        "column block_time: invalid input syntax for type timestamp with time zone: \"\\.\"";
    let good = ("chain.csv", "id,onerow_check\ntestnet,t\n");
    // Rows of `blocks.csv`. `@` is the time up to the tens of seconds.
    let blocks = [
        (
            "@0+00,1,aa\n@1+00,two,bb\n",
            "line 3, column height: invalid input syntax for type bigint: \"two\"",
        ),
        ("@0+00,1,\n", NOT_NULL),
        (
            "@0+00,1,aa\n@1+00,1,bb\n",
            "line 3: duplicate key value violates unique constraint \"blocks_height_idx\", \
             Key (height)=(1) already exists",
        ),
        ("@0+00,1\n", "line 2: missing data for column \"hash\""),
        ("@0+00,1,Aa\n", "line 2, column hash: the hash is not in lower case: \"Aa\""),
        // A line `\.` ends the text for PostgreSQL before 18, which then reports success.
        ("@0+00,1,aa\n\\.\n@1+00,2,bb\n", &format!("line 3, {NO_TIME}")),
        ("@0+00,1,\"a\na\"\n@1+00,2,bb\n@3+00,4,dd", "line 5: height 3 is missing"),
        ("@1.5+00,1,aa\n\"@1+00\",2,bb\n", "line 3: block 2 is not later than block 1"),
        ("@1+00,1,aa\n2024-01-01T01:00:00+01,2,bb\n", "height 2: block 2 is not later than block 1"),
        ("@4+00,4,dd\n@1+00,1,aa\n@2+00,2,bb\n", "height 4: height 3 is missing"),
        ("@0+00,1,aa\n2262-01-01 00:00:00+00,2,bb\n", "line 3: a time is outside of 1678 to 2261"),
    ];
    for (rows, message) in blocks {
        let content = format!("block_time,height,hash\n{}", rows.replace('@', "2024-01-01 00:00:0"));
        let found = refusal(&[good, ("blocks.csv", &content)]).await;
        assert_eq!(found, format!("blocks.csv, {message}"));
    }
    let files = [
        ("blocks.csv", "block_time,height,hash,extra\n@0+00,1,,x\n", NOT_NULL),
        (
            "blocks.csv",
            "block_time,height,hash,extra\r\n\\.\r\n@1+00,2,bb,\r\n",
            &format!("line 2, {NO_TIME}"),
        ),
        (
            "blocks.csv",
            "hash,height,extra,block_time\naa,1,,@0Z\nff,6,,@1Z\n",
            "line 3: heights 2 to 5 are missing",
        ),
        ("blocks.csv", "height,height\n", "line 1: the header names column \"height\" twice"),
        ("blocks.csv", "", "line 1: the file is empty, a header with column names was expected"),
        ("blocks.csv", "1,2,3\n", "line 1: none of its columns is a column of table blocks"),
        (
            "balances.csv",
            "balance,account_id,block_time,tx_hash\n1.0,0.5,@0+00,t\n0.4,b,@0+00,t\n",
            "line 3, column balance: an amount is a whole number: \"0.4\"",
        ),
        (
            "balances.csv",
            "account_id,block_time,tx_hash,balance\na,@0+00,t,1\nb,Today 12:00,t,1\n",
            "line 3, column block_time: the time would be that of storing: \"Today 12:00\"",
        ),
        (
            "balances.csv",
            "account_id,extra,block_time,tx_hash,balance\na,\"1\n.5\",@0+00,t,\"15e-1\"\n",
            "line 2, column balance: an amount is a whole number: \"15e-1\"",
        ),
    ];
    for (file, content, message) in files {
        let content = content.replace('@', "2024-01-01 00:00:0");
        assert_eq!(refusal(&[good, (file, &content)]).await, format!("{file}, {message}"));
    }
    // A text without repetitions, which PostgreSQL cannot compress.
    let digits = |number: u64| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let long: String = (1..1000).map(digits).collect();
    let rows = format!("account_id,block_time,tx_hash,balance\n{long},2024-01-01Z,t,1\n");
    let found = refusal(&[good, ("balances.csv", &rows)]).await;
    assert!(found.starts_with("balances.csv, line 2: index row"), "{found}");
}

#[tokio::test]
async fn no_number_is_stored_that_is_none_and_no_time_that_does_not_fit() {
    let (_database, client) = Database::with_client().await;
    let sql = include_str!("checked_columns.sql");
    let derived = |table: &str| {
        table.ends_with("_current")
            || ["current_balances", "first_rows_of_epochs", "last_block", "orders_rested", "trades_candle"]
                .contains(&table)
    };
    let mut checked = 0;
    for row in client.query(sql, &[]).await.unwrap() {
        let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        if derived(&table) || table == "refinery_schema_history" {
            continue;
        }
        let (wrong, right): (&[&str], &[&str]) = if kind == "timestamp with time zone" {
            (
                &[
                    "infinity", "-infinity", "0001-01-01 00:00:00+00", "1677-12-31 23:59:59+00",
                    "2262-01-01 00:00:00+00",
                ],
                &["1678-01-01 00:00:00+00", "2261-12-31 23:59:59.999999+00", "1754-08-30 22:43:41.128654+00"],
            )
        } else {
            (&["NaN", "Infinity", "-Infinity"], &["-1", "0"])
        };
        // A table with nothing but the checks of this one.
        let table = table.trim_matches('"');
        let like = format!(
            "DROP TABLE IF EXISTS pg_temp.probe; CREATE TEMP TABLE probe (LIKE public.{table} INCLUDING CONSTRAINTS);
             DO $$ DECLARE other text; BEGIN
                FOR other IN SELECT attname FROM pg_attribute WHERE attrelid = 'pg_temp.probe'::regclass AND attnum > 0
                LOOP EXECUTE format('ALTER TABLE pg_temp.probe ALTER %I DROP NOT NULL', other); END LOOP; END $$"
        );
        client.batch_execute(&like).await.unwrap();
        let insert = |value: &str| format!("INSERT INTO pg_temp.probe (\"{column}\") VALUES ('{value}')");
        for value in right {
            client.batch_execute(&insert(value)).await.unwrap();
        }
        for value in wrong {
            let refused = client.batch_execute(&insert(value)).await;
            assert!(refused.is_err(), "{table}.{column} takes {value}");
        }
        checked += 1;
    }
    assert!(checked > 100, "only {checked} columns");
}

#[tokio::test]
async fn blocks_may_come_in_any_order() {
    let row = |height: u8| format!("2024-01-01 00:00:0{height}+00,{height},{height}\n");
    for order in [[1, 3, 2, 4], [4, 1, 2, 3], [4, 3, 2, 1]] {
        let content = format!("block_time,height,hash\n{}", order.map(row).concat());
        let report = load(&Database::fresh().await, &[("blocks.csv", &content)]).await.unwrap();
        assert_eq!(report.tables[0].rows, 4);
    }
}

#[tokio::test]
async fn rows_of_no_block_are_refused() {
    let balances = "account_id,block_time,tx_hash,balance\na,2024-01-01 00:00:00+00,t,5\n\
        b,2024-01-01 00:00:00.5+00,t,5\n";
    let refused = refusal(&[("blocks.csv", BLOCK), ("balances.csv", balances)]).await;
    assert_eq!(refused, "balances.csv: no block has the block_time 2024-01-01 00:00:00.5+00");
    let parameters = |time| format!("key,value,tx_hash,block_time\na,b,t,{time}\n");
    let (older, later) = (parameters("2023-01-01 00:00:00+00"), parameters("2024-01-01 00:00:01+00"));
    let files = [("blocks.csv", BLOCK), ("network_parameters.csv", &*older)];
    load(&Database::fresh().await, &files).await.unwrap();
    let refused = refusal(&[("blocks.csv", BLOCK), ("network_parameters.csv", &later)]).await;
    assert_eq!(refused, "network_parameters.csv: no block is as late as 2024-01-01 00:00:01+00");
    // Reads as of a block take the trades of its second.
    for (time, is_loaded) in [("23:59:59", false), ("00:00:00.999999", true), ("00:00:01", false)] {
        let day = if time.starts_with("23") { "2023-12-31" } else { "2024-01-01" };
        let trades = format!(
            "synthetic_time,tx_hash,block_time,seq_num,id,market_id,price,size,buyer,seller,buy_order,sell_order,type\n\
            {day} {time}+00,t,2024-01-01 00:00:00+00,1,t,m,5,1,b,s,o,p,1\n"
        );
        match load(&Database::fresh().await, &[("blocks.csv", BLOCK), ("trades.csv", &trades)]).await {
            Ok(_) => assert!(is_loaded, "{time}"),
            Err(error) => assert!(!is_loaded && error.to_string().contains("synthetic_time is"), "{error}"),
        }
    }
}

#[tokio::test]
async fn rows_are_added_neither_to_stored_blocks_nor_to_a_table_with_rows() {
    let (blocks, chain) = (("blocks.csv", BLOCKS), ("chain.csv", "id,onerow_check\ntestnet,t\n"));
    let balances = ("balances.csv", "account_id,block_time,tx_hash,balance\na,2024-01-01 00:00:00+00,t,5\n");
    for (stored, table, more) in [(blocks, "blocks", [balances, chain]), (chain, "chain", [chain, blocks])] {
        let database = Database::fresh().await;
        load(&database, &[stored]).await.unwrap();
        let error = load(&database, &more).await.unwrap_err();
        assert_eq!(error.to_string(), format!("a load needs empty tables, but there are rows in {table}"));
        let rows = "SELECT (SELECT count(*) FROM blocks) || ' ' || (SELECT count(*) FROM chain)";
        let left = if table == "blocks" { "2 0" } else { "0 1" };
        assert_eq!(text(&database.connect().await, rows).await, left);
        // Assets are in no segment, so segments that are imported bring none.
        load(&database, &[("assets.csv", "id\n")]).await.unwrap();
    }
}

#[tokio::test]
async fn folders_and_databases_that_cannot_serve_are_refused() {
    let database = Database::fresh().await;
    let error = load(&database, &[("readme.txt", "x"), ("other.csv", "x\n")]).await.unwrap_err();
    assert!(matches!(error, LoadError::NothingToLoad { .. }), "{error:?}");
    let error = load_folder(database.url(), Path::new("no/such/folder"), |_, _, _| ()).await.unwrap_err();
    assert!(matches!(error, LoadError::Read { .. }), "{error:?}");
    for make in ["mkfifo", "mkdir"] {
        let files = folder(&[("trades.csv", "id\n")]);
        let blocks = files.path().join("blocks.csv");
        assert!(std::process::Command::new(make).arg(blocks).status().unwrap().success());
        let error = load_folder(database.url(), files.path(), |_, _, _| ()).await.unwrap_err();
        assert!(format!("{error:?}").contains("not a regular file"), "{make}: {error:?}");
    }

    let empty = Database::empty().await;
    let error = load(&empty, &[("blocks.csv", BLOCKS)]).await.unwrap_err();
    assert!(error.to_string().contains("lacks migration V1__exportable_tables"), "{error}");
}

#[tokio::test]
async fn two_loads_at_once_become_one() {
    let database = Database::fresh().await;
    let files = folder(&[("blocks.csv", BLOCKS), ("chain.csv", "id\ntestnet\n")]);
    let one = load_folder(database.url(), files.path(), |_, _, _| ());
    let two = load_folder(database.url(), files.path(), |_, _, _| ());
    let (one, two) = tokio::join!(one, two);
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let refused = if one.is_ok() { two } else { one };
    assert!(matches!(refused, Err(LoadError::NotEmpty { .. })), "{refused:?}");
}
