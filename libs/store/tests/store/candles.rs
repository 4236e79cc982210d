//! Candles of every interval equal a recomputation from the trades (I6), for inserts, deletes and concurrent
//! writers in any order.

use futures_util::future::try_join_all;
use mesh_testbed::Database;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// Candles by the definition of the contract, from all trades.
const RECOMPUTED: &str = include_str!("candles.sql");

async fn assert_candles_are_right(client: &Client) {
    let difference = format!(
        "SELECT count(*) FROM (
             (TABLE trades_candle EXCEPT ALL ({RECOMPUTED})) UNION ALL (({RECOMPUTED}) EXCEPT ALL TABLE trades_candle)
         ) AS difference"
    );
    let different: i64 = client.query_one(&difference, &[]).await.unwrap().get(0);
    assert_eq!(different, 0, "candles differ from what the trades say");
    let volumes = "SELECT count(DISTINCT volume) <= 1 FROM (
        SELECT interval, sum(volume) AS volume FROM trades_candle GROUP BY 1
        UNION ALL SELECT 'trades', sum(size) FROM trades HAVING count(*) > 0) AS sums";
    assert!(client.query_one(volumes, &[]).await.unwrap().get::<_, bool>(0), "volumes differ by interval");
}

/// Trades over several days, in clusters, so that candles have one trade or many; a trade is (block,
/// position), and a block's trades may run into the next second.
fn trades(count: u32, random: &mut SmallRng) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    let mut block_us: i64 = 1_704_067_199_000_000 - random.random_range(0..2_000_000);
    while found.len() < count as usize {
        block_us += match random.random_range(0..10) {
            0 => random.random_range(1..40_000_000_000),
            1..4 => random.random_range(1..600_000_000),
            _ => random.random_range(10..2_000_000),
        };
        for seq_num in 0..random.random_range(1..6) {
            let time = block_us + seq_num;
            let market = random.random_range(0..3);
            // A 27-digit price now and then, and equal prices at different times.
            let price = match random.random_range(0..5) {
                0 => "123456789012345678901234567".to_owned(),
                _ => random.random_range(0..50).to_string(),
            };
            let size = random.random_range(0..i64::MAX / 1000);
            let at = |us: i64| format!("to_timestamp(0) + {us} * interval '1 us'");
            let row = format!(
                "({}, 'tx', {}, {seq_num}, 'id{time}', 'market{market}', {price}, {size}, 'b', 's', 1, 'o', 'o', 1)",
                at(time),
                at(block_us)
            );
            found.push((time, row));
        }
    }
    found
}

async fn insert(client: &Client, rows: &mut [(i64, String)]) {
    // Writers that insert the same trades have to do so in one order, else they deadlock on the trades' own
    // key.
    rows.sort();
    let rows: Vec<&str> = rows.iter().map(|(_, row)| row.as_str()).collect();
    let statement = format!("INSERT INTO trades VALUES {} ON CONFLICT DO NOTHING", rows.join(", "));
    client.batch_execute(&statement).await.unwrap();
}

/// Inserts trades by statements of so many rows.
fn insert_all(client: Client, mut rows: Vec<(i64, String)>, in_statement: usize) -> JoinHandle<()> {
    tokio::spawn(async move {
        for statement in rows.chunks_mut(in_statement) {
            insert(&client, statement).await;
        }
    })
}

#[tokio::test]
async fn candles_are_right_after_random_statements_in_any_order_with_late_rows_and_repeats() {
    for seed in 0..6 {
        let (_database, client) = Database::with_client().await;
        let mut random = SmallRng::seed_from_u64(seed);
        let mut rows = trades(500, &mut random);
        rows.extend_from_within(..150);
        rows.shuffle(&mut random);
        while !rows.is_empty() {
            let mut statement = rows.split_off(rows.len() - random.random_range(1..=rows.len().min(60)));
            insert(&client, &mut statement).await;
            assert_candles_are_right(&client).await;
        }
    }
}

#[tokio::test]
async fn candles_are_right_under_concurrent_writers_of_the_same_markets() {
    let database = Database::fresh().await;
    let rows = trades(3000, &mut SmallRng::seed_from_u64(7));
    let mut writers = Vec::new();
    for seed in 0..4 {
        let client = database.connect().await;
        let mut random = SmallRng::seed_from_u64(20 + seed);
        // Each writer has every other trade, so most are written twice.
        let mut mine = rows.clone();
        mine.retain(|_| random.random());
        mine.shuffle(&mut random);
        writers.push(insert_all(client, mine, 25));
    }
    try_join_all(writers).await.unwrap();
    assert_candles_are_right(&database.connect().await).await;
}

#[tokio::test]
async fn candles_follow_deletes_and_a_truncate() {
    let (_database, client) = Database::with_client().await;
    let mut random = SmallRng::seed_from_u64(11);
    let mut rows = trades(600, &mut random);
    insert(&client, &mut rows).await;
    for condition in [
        "seq_num = 0", "market_id = 'market1'", "false", "price = 7", "block_time > '2024-01-01 06:00:00+00'",
    ] {
        client.batch_execute(&format!("DELETE FROM trades WHERE {condition}")).await.unwrap();
        assert_candles_are_right(&client).await;
    }
    insert(&client, &mut rows).await;
    assert_candles_are_right(&client).await;
    for truncate in ["TRUNCATE trades", "TRUNCATE trades, trades_candle", "TRUNCATE trades_candle, trades"] {
        insert(&client, &mut rows).await;
        client.batch_execute(truncate).await.unwrap();
        assert_candles_are_right(&client).await;
        assert_eq!(client.query("SELECT FROM trades_candle", &[]).await.unwrap().len(), 0);
    }
}

#[tokio::test]
async fn candles_are_right_when_deletes_meet_inserts() {
    let database = Database::fresh().await;
    let rows = trades(1500, &mut SmallRng::seed_from_u64(5));
    let mut tasks = Vec::new();
    for part in 0..3 {
        let client = database.connect().await;
        let mut mine = rows.clone();
        mine.retain(|(time, _)| time % 3 == part);
        mine.shuffle(&mut SmallRng::seed_from_u64(part as u64));
        tasks.push(insert_all(client, mine, 20));
    }
    for odd in 0..2 {
        let client = database.connect().await;
        tasks.push(tokio::spawn(async move {
            for digit in (0..10).filter(|digit| digit % 2 == odd).cycle().take(60) {
                let delete = format!("DELETE FROM trades WHERE id LIKE '%{digit}'");
                client.batch_execute(&delete).await.unwrap();
            }
        }));
    }
    try_join_all(tasks).await.unwrap();
    assert_candles_are_right(&database.connect().await).await;
}

#[tokio::test]
async fn a_stored_trade_cannot_be_updated() {
    let (_database, client) = Database::with_client().await;
    insert(&client, &mut trades(5, &mut SmallRng::seed_from_u64(1))).await;
    let error = client.batch_execute("UPDATE trades SET price = price + 1").await.unwrap_err();
    assert_eq!(
        error.as_db_error().map(tokio_postgres::error::DbError::message),
        Some("trades are append-only: a stored trade cannot be updated")
    );
    client.batch_execute("UPDATE trades SET price = price + 1 WHERE false").await.unwrap();
    assert_candles_are_right(&client).await;
}
