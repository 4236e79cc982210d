//! The cost of a page does not depend on its depth: a page deep inside a long list reads as many buffers as
//! the first one, in both orders, with and without filters, with and without planner statistics (P13).

mod flat;

use mesh_query::{ACCOUNTS, CANDLES, DELEGATIONS, MARKETS, ORDERS, POSITIONS, SUMMARIES, TRADES};
use mesh_store::{Past, TimeUs, Value};
use mesh_testbed::Database;

use self::flat::{Filtered, assert_flat, fill, id, text};

/// 100 epochs, parties and nodes; the order on disk is unrelated to that of the list.
#[tokio::test]
async fn delegations_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows =
        "SELECT lpad(to_hex(n / 100 % 100), 64, '0'), lpad(to_hex(n % 100), 64, '0'), n / 10000, n, 'tx',
            timestamptz '2023-01-01 00:00:00+00', n
        FROM (SELECT step * 618033 % 1000000 AS n FROM generate_series(0, 999999::int8) AS step) AS numbers";
    fill(&database.connect().await, "delegations_current", rows).await;
    let list = |name, filters: [Option<Value>; 3], rows, total| Filtered {
        name,
        list: &DELEGATIONS,
        filters: filters.into(),
        past: None,
        table: "delegations_current",
        rows,
        total,
    };
    let some = || Some(id("2a"));
    let epoch = |epoch| Some(Value::Integer(epoch));
    let lists = [
        list("all", [None, None, None], "true", 1_000_000),
        list("of a party", [some(), None, None], "party_id = lpad('2a', 64, '0')", 10_000),
        list("to a node", [None, some(), None], "node_id = lpad('2a', 64, '0')", 10_000),
        list("of an epoch", [None, None, epoch(42)], "epoch_id = 42", 10_000),
    ];
    let empty = [
        list("of no party", [text("none"), None, None], "", 0),
        list("to no node", [None, text("none"), None], "", 0),
        list("of a coming epoch", [None, None, epoch(1000)], "", 0),
        list("of a party to no node", [some(), text("none"), None], "", 0),
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
    let list = |name, market, seconds: [Option<i64>; 2], rows, total| {
        let [from, to] = seconds.map(|time| time.map(|time| Value::Time(TimeUs(time * 1_000_000))));
        let filters = vec![text("1_minute"), Some(market), from, to];
        Filtered { name, list: &CANDLES, filters, past: None, table: "trades_candle", rows, total }
    };
    // 2023-06-01, after the last candle.
    let time = TimeUs(1_685_577_600_000_000);
    let past = Past { height: 1, time, is_sealed: true, delegation_epoch: 0, reward_epoch: 0 };
    let market = || list("of a market", id("1"), [None, None], "market_id = lpad('1', 64, '0')", 200_000);
    let lists = [
        market(),
        Filtered { name: "of a market as of a block", past: Some(past), ..market() },
        list(
            "of some weeks",
            id("1"),
            // 2023-02-01 to 2023-05-01.
            [Some(1_675_209_600), Some(1_682_899_199)],
            "market_id = lpad('1', 64, '0')
                AND period_start >= '2023-02-01 00:00:00+00' AND period_start < '2023-05-01 00:00:00+00'",
            128_160,
        ),
    ];
    let empty = [list("of no market", id("none"), [None, None], "", 0)];
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
    let list = |name, [from, to]: [Option<i64>; 2], markets: &[&str], assets: &[&str], rows, total| {
        let ids = |ids: &[&str]| Some(Value::Texts(ids.iter().map(|id| format!("{id:0>64}")).collect()));
        let epoch = |epoch: Option<i64>| epoch.map(Value::Integer);
        let filters = vec![epoch(from), epoch(to), ids(markets), ids(assets)];
        Filtered { name, list: &SUMMARIES, filters, past: None, table: "rewards", rows, total }
    };
    let (all, some) = ([None, None], [Some(100), Some(300)]);
    let lists = [
        list("all", all, &[], &[], "true", 300_000),
        list("of epochs", some, &[], &[], "epoch_id BETWEEN 100 AND 300", 120_600),
        list("of an asset", all, &[], &["3"], "asset_id = lpad('3', 64, '0')", 60_000),
        list(
            "of an unknown asset and one of some epochs",
            some,
            &[],
            &["none", "3"],
            "asset_id = lpad('3', 64, '0') AND epoch_id BETWEEN 100 AND 300",
            24_120,
        ),
        list("of a market", all, &["7"], &[], "market_id = lpad('7', 64, '0')", 15_000),
        list(
            "of two markets",
            all,
            &["7", "8"],
            &[],
            "market_id IN (lpad('7', 64, '0'), lpad('8', 64, '0'))",
            30_000,
        ),
        list(
            "of a market and an asset",
            all,
            &["7"],
            &["3"],
            "market_id = lpad('7', 64, '0') AND asset_id = lpad('3', 64, '0')",
            3_000,
        ),
    ];
    let empty = [
        list("of no asset", all, &[], &["none"], "", 0),
        list("of no market", all, &["none"], &[], "", 0),
        list("of coming epochs", [Some(1000), Some(2000)], &[], &[], "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

/// 200,000 trades of two markets between 100 parties.
#[tokio::test]
async fn trades_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows = "SELECT time, 'tx', time, 0, n, lpad(to_hex(n / 100000), 64, '0'), 2, 3, lpad(to_hex(n % 100), 64, '0'),
            lpad(to_hex(n / 100 % 100), 64, '0'), 1, 'buy', 'sell', 1
        FROM (SELECT step * 61803 % 200000 AS n FROM generate_series(0, 199999::int8) AS step) AS numbers,
            LATERAL (SELECT timestamptz '2023-01-01 00:00:00+00' + n * interval '1 minute' AS time) AS times";
    fill(&database.connect().await, "trades", rows).await;
    let list = |name, market, party, seconds: [Option<i64>; 2], rows, total| {
        let [from, to] = seconds.map(|time| time.map(|time| Value::Time(TimeUs(time * 1_000_000))));
        Filtered {
            name,
            list: &TRADES,
            filters: vec![market, party, from, to],
            past: None,
            table: "trades",
            rows,
            total,
        }
    };
    let (market, party, all) = (|| Some(id("1")), || Some(id("2a")), [None, None]);
    // 2023-02-01 to 2023-05-01.
    let weeks = [Some(1_675_209_600), Some(1_682_899_199)];
    let of_party = "(buyer = lpad('2a', 64, '0') OR seller = lpad('2a', 64, '0'))";
    let in_weeks = "synthetic_time >= '2023-02-01 00:00:00+00' AND synthetic_time < '2023-05-01 00:00:00+00'";
    let of_party_in_market = format!("{of_party} AND market_id = lpad('1', 64, '0')");
    let lists = [
        list("all", None, None, all, "true", 200_000),
        list("of some weeks", None, None, weeks, in_weeks, 128_160),
        list("of a market", market(), None, all, "market_id = lpad('1', 64, '0')", 100_000),
        list("of a party", None, party(), all, of_party, 3_980),
        list("of a party in a market", market(), party(), all, &of_party_in_market, 1_990),
    ];
    let none = || text("none");
    let empty = [
        list("of no market", none(), None, all, "", 0),
        list("of no party", None, none(), all, "", 0),
        list("of a party in no market", none(), party(), all, "", 0),
        list("of no party in a market in some weeks", market(), none(), weeks, "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

/// 200,000 orders of 100 parties in two markets. Every other one is live; in the first market, one in ten is rejected.
#[tokio::test]
async fn orders_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows = "(id, first_time, market_id, party_id, side, price, size, remaining, time_in_force, type, status, version,
            batch_id, created_at, post_only, reduce_only, block_time, seq_num, is_live)
        SELECT lpad(to_hex(n), 64, '0'), time, lpad(to_hex(n / 100000), 64, '0'), lpad(to_hex(n % 100), 64, '0'), 1, 5, 9,
            9, 1, 1, CASE WHEN n / 100 % 2 = 0 THEN 1 WHEN n / 100 % 10 = 1 AND n < 100000 THEN 6 ELSE 5 END, 1, 0, time,
            false, false, time, 0, n / 100 % 2 = 0
        FROM (SELECT step * 61803 % 200000 AS n FROM generate_series(0, 199999::int8) AS step) AS numbers,
            LATERAL (SELECT timestamptz '2023-01-01 00:00:00+00' + n * interval '1 minute' AS time) AS times";
    fill(&database.connect().await, "orders_current", rows).await;
    let list = |name, [market, party, status, live]: [Option<Value>; 4], rows, total| Filtered {
        name,
        list: &ORDERS,
        filters: vec![market, party, status, live, None, None],
        past: None,
        table: "orders_current",
        rows,
        total,
    };
    let (market, party, live) = (|| Some(id("1")), || Some(id("2a")), || Some(Value::Small(1)));
    let statuses = |numbers: &[i16]| Some(Value::Smalls(numbers.to_vec()));
    let of_party_in_market = "party_id = lpad('2a', 64, '0') AND market_id = lpad('1', 64, '0')";
    let lists = [
        list("all", [None, None, None, None], "true", 200_000),
        list("of a market", [market(), None, None, None], "market_id = lpad('1', 64, '0')", 100_000),
        list("of a party", [None, party(), None, None], "party_id = lpad('2a', 64, '0')", 2_000),
        list("of a party in a market", [market(), party(), None, None], of_party_in_market, 1_000),
        list("in a status", [None, None, statuses(&[6]), None], "status = 6", 10_000),
        list("in some statuses", [None, None, statuses(&[1, 6]), None], "status IN (1, 6)", 110_000),
        list("live", [None, None, None, live()], "is_live", 100_000),
        list(
            "live in a market",
            [market(), None, None, live()],
            "is_live AND market_id = lpad('1', 64, '0')",
            50_000,
        ),
        list(
            "live of a party",
            [None, party(), None, live()],
            "is_live AND party_id = lpad('2a', 64, '0')",
            1_000,
        ),
    ];
    let none = || text("none");
    let empty = [
        list("of no market", [none(), None, None, None], "", 0),
        list("of no party", [None, none(), None, live()], "", 0),
        list("of a party in no market", [none(), party(), None, None], "", 0),
        list("in no status", [None, None, statuses(&[2, 3]), None], "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

/// A thousand parties in a thousand markets.
#[tokio::test]
async fn positions_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let rows = "SELECT lpad(to_hex(n / 1000), 64, '0'), lpad(to_hex(n % 1000), 64, '0'), n, 1, 2, 3,
            timestamptz '2023-01-01 00:00:00+00', n, 1, 2, 3, 4, 'POSITION_STATUS_UNSPECIFIED'
        FROM (SELECT step * 618033 % 1000000 AS n FROM generate_series(0, 999999::int8) AS step) AS numbers";
    fill(&database.connect().await, "positions_current", rows).await;
    let list = |name, filters: [Option<Value>; 2], rows, total| Filtered {
        name,
        list: &POSITIONS,
        filters: filters.into(),
        past: None,
        table: "positions_current",
        rows,
        total,
    };
    let some = || Some(id("2a"));
    let lists = [
        list("all", [None, None], "true", 1_000_000),
        list("of a party", [some(), None], "party_id = lpad('2a', 64, '0')", 1_000),
        list("in a market", [None, some()], "market_id = lpad('2a', 64, '0')", 1_000),
    ];
    let empty = [
        list("of no party", [text("none"), None], "", 0),
        list("in no market", [None, text("none")], "", 0),
        list("of a party in no market", [some(), text("none")], "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}

/// 20,000 markets with ten rows of data each; half of them settle in one asset.
#[tokio::test]
async fn markets_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let rows = "SELECT lpad(to_hex(n), 64, '0'), 'code', 'name', 'quote', 'ASSET' || n % 2, 1, 2,
            'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', n, timestamptz '2023-01-01 00:00:00+00'
        FROM (SELECT step * 6187 % 20000 AS n FROM generate_series(0, 19999::int8) AS step) AS numbers";
    fill(&client, "markets_current", rows).await;
    let data = "(synthetic_time, tx_hash, block_time, seq_num, market, mark_price)
        SELECT block_time + n * interval '1 us', 'tx', block_time, n, lpad(to_hex(n), 64, '0'), n
        FROM generate_series(0, 19999) AS n, generate_series(1, 10) AS block,
            LATERAL (SELECT timestamptz '2023-01-01 00:00:00+00' + block * interval '1 s' AS block_time) AS times";
    fill(&client, "market_data", data).await;
    let list = |name, filters: [Option<Value>; 2], rows, total| Filtered {
        name,
        list: &MARKETS,
        filters: filters.into(),
        past: None,
        table: "markets_current",
        rows,
        total,
    };
    let lists = [
        list("all", [None, None], "true", 20_000),
        list("that settle in an asset", [None, text("ASSET1")], "settlement_asset = 'ASSET1'", 10_000),
        list("in a state", [text("STATE_ACTIVE"), None], "true", 20_000),
    ];
    assert_flat(&database, &lists, &[]).await;
}

/// Twenty accounts of each of a hundred parties in a hundred markets, each with a balance.
#[tokio::test]
async fn accounts_cost_the_same_at_any_depth() {
    let database = Database::fresh().await;
    let client = database.connect().await;
    let numbers =
        "FROM (SELECT step * 61803 % 200000 AS n FROM generate_series(0, 199999::int8) AS step) AS numbers";
    let time = "timestamptz '2023-01-01 00:00:00+00'";
    let rows = format!(
        "SELECT 'account' || n, CASE n / 2000 WHEN 7 THEN 'network' ELSE lpad(to_hex(n / 2000), 64, '0') END, 'ASSET',
            lpad(to_hex(n / 20 % 100), 64, '0'), n % 20, 'tx', {time} {numbers}"
    );
    fill(&client, "accounts", &rows).await;
    fill(&client, "current_balances", &format!("SELECT 'account' || n, 'tx', {time}, n {numbers}")).await;
    let list = |name, filters: [Option<Value>; 2], rows, total| Filtered {
        name,
        list: &ACCOUNTS,
        filters: filters.into(),
        past: None,
        table: "accounts_with_balances",
        rows,
        total,
    };
    let party = |end: &str| Some(Value::party(&format!("{end:0>64}")));
    let lists = [
        list("all", [None, None], "true", 200_000),
        list("in a market", [None, Some(id("2a"))], "market = lpad('2a', 64, '0')", 2_000),
        list("of a party", [party("2a"), None], "party = lpad('2a', 64, '0')", 2_000),
    ];
    let empty = [
        list("of no party", [party("none"), None], "", 0),
        list("in no market", [None, text("none")], "", 0),
        list("of a party in no market", [party("2a"), text("none")], "", 0),
    ];
    assert_flat(&database, &lists, &empty).await;
}
