//! The default history must contain every status, every kind, and every special case of the contract.

use std::collections::{BTreeMap, BTreeSet};

use mesh_demo::Rows;

use crate::parsed::{Parsed, default_rows};

/// All values of columns, as `<column> <prefix of its values>: <value> <value>`. A line that begins with blanks
/// continues the one before.
const VALUES: &str = include_str!("values.txt");

/// Columns with the empty text.
const EMPTY: &str = "orders.reference orders.lp_id liquidity_provisions.reference markets.instrument_id \
    positions.tx_hash rewards.market_id withdrawals.ref withdrawals.foreign_tx_hash";

/// Columns with at least so many values.
const AT_LEAST: [(&str, usize); 10] = [
    ("orders.reason", 13),
    ("orders.version", 4),
    ("orders.batch_id", 100),
    ("trades.buyer_auction_batch", 3),
    ("market_data.price_monitoring_bounds", 3),
    ("network_limits.propose_asset_enabled_from", 2),
    ("network_limits.block_time", 5),
    ("rewards.market_id", 5),
    ("rewards.asset_id", 4),
    ("rewards.epoch_id", 48),
];

#[test]
fn the_default_history_covers_the_contract() {
    let rows = default_rows();
    every_value_occurs(rows);
    traps_of_csv_occur(rows);
    withdrawals_go_every_way(rows);
    oracle_specs_have_every_form(rows);
    upgrades_grow_and_end(rows);
    parameters_and_epochs_change(rows);
    candles_look_real(rows);
}

/// The values of a column without NULL.
fn values<'a>(rows: &'a Rows, column: &str) -> Vec<&'a str> {
    let (table, column) = column.split_once('.').unwrap();
    Parsed::new(rows, table).census(column).into_keys().flatten().collect()
}

fn every_value_occurs(rows: &Rows) {
    for line in VALUES.replace("\n    ", " ").lines() {
        let (column, expected) = line.split_once(": ").unwrap();
        let (column, prefix) = column.split_once(' ').unwrap();
        let expected = expected.split(' ').map(|value| format!("{prefix}{value}"));
        assert_eq!(values(rows, column), Vec::from_iter(&BTreeSet::from_iter(expected)), "{column}");
    }
    for column in EMPTY.split(' ') {
        assert!(values(rows, column).contains(&""), "{column}");
    }
    for (column, least) in AT_LEAST {
        let count = values(rows, column).len();
        assert!(count >= least, "{column} has {count} values");
    }
}

fn traps_of_csv_occur(rows: &Rows) {
    let references = values(rows, "orders.reference");
    for text in ["NULL", "\\N", "\\.", "carriage\r\nreturn", "line one\nline two", "\r", "\"", "a, b and c"] {
        assert!(references.contains(&text), "no order has the reference {text:?}");
    }
    assert!(references.iter().any(|text| !text.is_ascii()));
    let parameters = values(rows, "network_parameters.value");
    assert!(parameters.iter().any(|notice| notice.contains("\"please\" close positions\r\n")));
    let slippage = Parsed::new(rows, "markets").census("quadratic_slippage_factor");
    assert_eq!(Vec::from_iter(slippage.keys()), [&None, &Some("0.1")]);
    assert!(values(rows, "market_data.price_monitoring_bounds").contains(&"null"));
    let widest = |column| values(rows, column).into_iter().map(str::len).max().unwrap();
    assert!(widest("balances.balance") >= 27);
    assert_eq!(widest("deposits.amount"), 78);
    assert!(widest("rewards.percent_of_total") >= 16);
    assert!(values(rows, "positions.average_entry_market_price").iter().any(|price| price.contains('.')));
    for fee in values(rows, "liquidity_provisions.fee") {
        assert_eq!(fee.split_once('.').unwrap().1.len(), 16);
    }
}

fn withdrawals_go_every_way(rows: &Rows) {
    let withdrawals = Parsed::new(rows, "withdrawals");
    let mut ways: BTreeMap<&str, String> = BTreeMap::new();
    for row in withdrawals.rows {
        let status = withdrawals.text(row, "status");
        let is_final = status == "STATUS_FINALIZED";
        assert_eq!(withdrawals.text(row, "foreign_tx_hash").len(), if is_final { 66 } else { 0 });
        assert_eq!(withdrawals.text(row, "withdrawn_timestamp") == "1970-01-01 00:00:00+00", !is_final);
        *ways.entry(withdrawals.text(row, "id")).or_default() += status;
    }
    let expected = ["STATUS_OPEN", "STATUS_OPENSTATUS_FINALIZED", "STATUS_OPENSTATUS_REJECTED"];
    assert_eq!(BTreeSet::from_iter(ways.into_values()), expected.map(str::to_owned).into());
    let receivers = values(rows, "withdrawals.ext");
    assert!(receivers.contains(&"{}") && receivers[0].starts_with("{\"erc20\":{\"receiverAddress\":\"0x"));
}

fn oracle_specs_have_every_form(rows: &Rows) {
    let specs = Parsed::new(rows, "oracle_specs");
    for row in specs.rows {
        let inside = specs.value(row, "internal_conditions").is_some();
        assert_eq!(inside, specs.value(row, "signers").is_none());
        assert_eq!(inside, specs.value(row, "filters").is_none());
    }
    let columns = ["oracle_specs.signers", "oracle_specs.filters", "oracle_specs.internal_conditions"];
    let all: String = columns.into_iter().flat_map(|column| values(rows, column)).collect();
    let kinds = "UNSPECIFIED EMPTY INTEGER STRING BOOLEAN DECIMAL TIMESTAMP".split(' ');
    let kinds = kinds.map(|kind| format!("\"type\":\"TYPE_{kind}\""));
    let operators = "UNSPECIFIED EQUALS GREATER_THAN GREATER_THAN_OR_EQUAL LESS_THAN LESS_THAN_OR_EQUAL";
    let operators = operators.split(' ').map(|name| format!("\"operator\":\"OPERATOR_{name}\""));
    // Older releases wrote numbers in place of names.
    let numbers = (0..=6).map(|kind| format!("\"type\":{kind}"));
    let numbers = numbers.chain((0..=5).map(|operator| format!("\"operator\":{operator}")));
    let places = [0, 2, 18].map(|places| format!("\"numberDecimalPlaces\":{places}"));
    let signers = ["pubKey", "ethAddress"].map(|signer| format!("\"{signer}\""));
    for part in kinds.chain(operators).chain(numbers).chain(places).chain(signers) {
        assert!(all.contains(&part), "no specification has {part}");
    }
}

fn upgrades_grow_and_end(rows: &Rows) {
    let upgrades = Parsed::new(rows, "protocol_upgrade_proposals");
    let mut steps: BTreeMap<[&str; 2], Vec<(usize, &str)>> = BTreeMap::new();
    for row in upgrades.rows {
        let approvers = upgrades.text(row, "approvers").trim_matches(['{', '}']).split(',');
        let approvers: Vec<&str> = approvers.filter(|key| !key.is_empty()).collect();
        assert!(approvers.is_sorted());
        let key = ["upgrade_block_height", "network_release_tag"].map(|column| upgrades.text(row, column));
        let status = upgrades.text(row, "status").rsplit_once('_').unwrap().1;
        steps.entry(key).or_default().push((approvers.len(), status));
    }
    assert!(steps.len() >= 12);
    assert_eq!(steps[&["3000", "v0.2.0"]].last().unwrap().1, "APPROVED");
    let grows = |steps: &Vec<(usize, &str)>| steps.len() > 5 && steps[..5].is_sorted();
    assert!(steps.values().any(grows));
    let comes_back = |pair: &[(usize, &str)]| (pair[0].1, pair[1].1) == ("REJECTED", "PENDING");
    assert!(steps.values().any(|steps| steps.windows(2).any(comes_back)));
    assert!(steps.values().any(|steps| steps.last().unwrap().1 == "PENDING"));
    let heights: BTreeSet<&str> = steps.keys().map(|key| key[0]).collect();
    assert!(heights.len() < steps.len(), "some tags share a height");
}

fn parameters_and_epochs_change(rows: &Rows) {
    let parameters = Parsed::new(rows, "network_parameters");
    let values = |key: &str| -> Vec<&str> {
        let of_key = parameters.rows.iter().filter(|row| parameters.text(row, "key") == key);
        of_key.map(|row| parameters.text(row, "value")).collect()
    };
    assert_eq!(values("spam.pow.difficulty"), ["15", "16", "15"]);
    assert_eq!(values("spam.pow.numberOfTxPerBlock"), ["2", "3", "2"]);
    assert_eq!(values("network.notice")[0], "");
    assert_eq!(rows.records("epochs").len(), 99, "fifty starts and forty-nine ends");
    let delegations = Parsed::new(rows, "delegations");
    let mut seen = BTreeMap::<_, u64>::new();
    for row in delegations.rows {
        let key = ["party_id", "node_id", "epoch_id"].map(|column| delegations.text(row, column));
        *seen.entry(key).or_default() += 1;
    }
    assert!(seen.values().any(|count| *count > 1), "some delegation changes within its epoch");
    assert!(delegations.census("amount").contains_key(&Some("0")));
}

/// Prices move within bounds in each hour, and busy hours have more trades than quiet ones.
fn candles_look_real(rows: &Rows) {
    let trades = Parsed::new(rows, "trades");
    let mut busy = BTreeMap::<&str, u64>::new();
    let mut hours: BTreeMap<(&str, &str), (i128, i128)> = BTreeMap::new();
    for row in trades.rows {
        let hour = &trades.text(row, "synthetic_time")[..13];
        *busy.entry(&hour[11..]).or_default() += 1;
        let price = trades.number(row, "price");
        let candle = hours.entry((trades.text(row, "market_id"), hour)).or_insert((price, price));
        *candle = (candle.0.min(price), candle.1.max(price));
    }
    assert!(hours.len() > 140, "{} hourly candles", hours.len());
    let moving = hours.values().filter(|(low, high)| high > low).count();
    assert!(moving * 10 > hours.len() * 9);
    for (key, (low, high)) in &hours {
        assert!(high * 100 < low * 112, "{key:?} goes from {low} to {high}");
    }
    assert!(busy["15"] > busy["05"], "{busy:?}");
}
