//! The rows of a generated block: orders, trades and what follows from them, in the shares of a busy network.

use mesh_testbed::scripted_node::{Block, event};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde_json::Value;

use super::ChainArgs;

/// Tables, their shares of the rows, and the attributes of a row; a name in braces stands for a generated
/// value.
const TABLES: [(&str, u32, &str); 7] = [
    (
        "mesh.orders",
        34,
        "id={own} market_id={market} party_id={one} side=1 price={price} size={size} remaining={size} \
         time_in_force=1 type=1 status=1 reference=a-client's-own-text version=1 batch_id=0 \
         created_at={time}",
    ),
    (
        "mesh.trades",
        20,
        "id={own} market_id={market} price={price} size={size} buyer={one} seller={other} aggressor=1 \
         buy_order={next} sell_order={last} type=1 buyer_maker_fee={fee} buyer_infrastructure_fee={fee} \
         buyer_liquidity_fee={fee} seller_maker_fee=0 seller_infrastructure_fee=0 seller_liquidity_fee=0",
    ),
    ("mesh.balances", 20, "account_id={of_block} balance={price}"),
    (
        "mesh.ledger",
        10,
        "account_from_id={one} account_to_id={other} quantity={fee} transfer_time={time} \
         account_from_balance={price} account_to_balance={more} type=TRANSFER_TYPE_MTM_WIN",
    ),
    (
        "mesh.positions",
        10,
        "market_id={market} party_id={of_block} open_volume={size} realised_pnl={fee} unrealised_pnl={fee} \
         average_entry_price={price} average_entry_market_price={price} loss=0 adjustment=0 \
         pending_open_volume={size} pending_realised_pnl={fee} pending_unrealised_pnl={fee} \
         pending_average_entry_price={price} pending_average_entry_market_price={price} \
         loss_socialisation_amount=0 distressed_status=POSITION_STATUS_UNSPECIFIED",
    ),
    (
        "mesh.market_data",
        5,
        "market={market} mark_price={price} best_bid_price={price} best_bid_volume={size} \
         best_offer_price={more} best_offer_volume={size} mid_price={price} static_mid_price={price} \
         open_interest={size} market_trading_mode=TRADING_MODE_CONTINUOUS \
         price_monitoring_bounds=[{\"minValidPrice\":\"1\",\"maxValidPrice\":\"2\"}] \
         market_state=STATE_ACTIVE",
    ),
    ("mesh.network_parameters", 1, "key={parameter} value={price}"),
];
const MARKETS: u64 = 20;
const PARTIES: u64 = 1_000;
/// Events of a transaction.
const OF_TX: usize = 5;
/// Every so many blocks one has the time of the block before it.
const SAME_TIME: u64 = 8;

/// Fills in a block's time, transactions and events.
pub(super) fn fill(args: &ChainArgs, height: u64, block: Block) -> Block {
    let mut random = SmallRng::seed_from_u64(scatter(args.seed ^ scatter(height)));
    let rows = if args.varied { random.random_range(0..=args.rows) } else { args.rows };
    let second = height - u64::from(height.is_multiple_of(SAME_TIME));
    let (day, hour, minute) = (1 + second / 86_400, second / 3_600 % 24, second / 60 % 60);
    let time = format!("2026-01-{day:02}T{hour:02}:{minute:02}:{:02}.123456789Z", second % 60);
    let total: u32 = TABLES.iter().map(|(_, share, _)| share).sum();
    let mut events: Vec<Value> = (0..rows)
        .map(|index| {
            let mut left = random.random_range(0..total);
            let chosen = TABLES.iter().find(|(_, share, _)| {
                let is_it = left < *share;
                left = left.wrapping_sub(*share);
                is_it
            });
            let (table, _, attributes) = chosen.unwrap_or(&TABLES[0]);
            row((table, attributes), (height, index), &time, &mut random)
        })
        .collect();
    let end = events.split_off(events.len() * 9 / 10);
    let of_txs = events.split_off(events.len() / 10);
    let mut txs: Vec<(Vec<u8>, u32, Vec<Value>)> = of_txs
        .chunks(OF_TX)
        .enumerate()
        .map(|(index, events)| (format!("{}/{height}/{index}", args.seed).into_bytes(), 0, events.to_vec()))
        .collect();
    // Events of a failed transaction, and of other types, are no rows.
    txs.push((format!("failed/{height}").into_bytes(), 5, vec![event("mesh.trades", &[("price", "x")])]));
    Block { time, txs, begin: events, end, ..block }
}

fn row(
    (table, attributes): (&str, &str),
    (height, index): (u64, u64),
    time: &str,
    random: &mut SmallRng,
) -> Value {
    let number = height * 100_000 + index;
    let market = id('m', random.random_range(0..MARKETS));
    let [one, other] = [0; 2].map(|_| id('p', random.random_range(0..PARTIES)));
    let [price, more] = [0; 2].map(|_| (97_000_000 + random.random_range(0..1_000_000_u64)).to_string());
    let [size, fee] = [1_000, 500].map(|most| random.random_range(1..most).to_string());
    let [own, next, last] = [0, 1, 2].map(|step| id('r', number + step));
    // One row of an account, a position, a parameter in a block at most.
    let (of_block, parameter) = (id('b', index), format!("generated.{index}"));
    let attributes: Vec<(&str, &str)> = attributes
        .split_ascii_whitespace()
        .filter_map(|attribute| attribute.split_once('='))
        .map(|(name, value)| match value {
            "{own}" => (name, &*own),
            "{next}" => (name, &*next),
            "{last}" => (name, &*last),
            "{market}" => (name, &*market),
            "{one}" => (name, &*one),
            "{other}" => (name, &*other),
            "{price}" => (name, &*price),
            "{more}" => (name, &*more),
            "{size}" => (name, &*size),
            "{fee}" => (name, &*fee),
            "{time}" => (name, time),
            "{of_block}" => (name, &*of_block),
            "{parameter}" => (name, &*parameter),
            constant => (name, constant),
        })
        .collect();
    event(table, &attributes)
}

/// An id of a kind, 64 hex digits.
fn id(kind: char, number: u64) -> String {
    let first = scatter(number ^ (u64::from(kind) << 56));
    let [second, third, fourth] = [1, 2, 3].map(|step| scatter(first.wrapping_add(step)));
    format!("{first:016x}{second:016x}{third:016x}{fourth:016x}")
}

/// Spreads numbers over all 64 bits.
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
