//! The default history must contain every status, every kind, and every special case of the contract.

use std::collections::{BTreeMap, BTreeSet};

use mesh_demo::{Plan, Rows};

use crate::parsed::{Parsed, history, rows_of};

#[test]
fn the_default_history_covers_the_contract() {
    let rows = rows_of(history(Plan::default()));
    every_label_occurs(&rows);
    every_number_occurs(&rows);
    traps_of_csv_occur(&rows);
    withdrawals_and_deposits_go_every_way(&rows);
    oracle_specs_have_every_form(&rows);
    upgrades_grow_and_end(&rows);
    parameters_and_limits_change(&rows);
    epochs_and_rewards_follow_each_other(&rows);
    candles_look_real(&rows);
}

fn census<'a>(rows: &'a Rows, table: &str, column: &str) -> BTreeMap<Option<&'a str>, u64> {
    Parsed::new(rows, table).census(column)
}

/// The values of a column without NULL.
fn texts<'a>(rows: &'a Rows, table: &str, column: &str) -> Vec<&'a str> {
    census(rows, table, column).into_keys().flatten().collect()
}

fn expect(rows: &Rows, table: &str, column: &str, prefix: &str, labels: &str) {
    let mut labels: Vec<String> =
        labels.split_ascii_whitespace().map(|label| format!("{prefix}{label}")).collect();
    labels.sort_unstable();
    assert_eq!(texts(rows, table, column), labels, "{table}.{column}");
}

fn every_label_occurs(rows: &Rows) {
    expect(rows, "deposits", "status", "STATUS_", "OPEN CANCELLED FINALIZED");
    expect(rows, "withdrawals", "status", "STATUS_", "OPEN REJECTED FINALIZED");
    expect(rows, "oracle_specs", "status", "STATUS_", "ACTIVE DEACTIVATED");
    let upgrade = "PROTOCOL_UPGRADE_PROPOSAL_STATUS_";
    expect(rows, "protocol_upgrade_proposals", "status", upgrade, "PENDING APPROVED REJECTED");
    let provisions = "ACTIVE STOPPED CANCELLED REJECTED UNDEPLOYED PENDING";
    expect(rows, "liquidity_provisions", "status", "STATUS_", provisions);
    let standings = "UNSPECIFIED ORDERS_CLOSED CLOSED_OUT DISTRESSED";
    expect(rows, "positions", "distressed_status", "POSITION_STATUS_", standings);
    let states = "PROPOSED REJECTED PENDING CANCELLED ACTIVE SUSPENDED CLOSED TRADING_TERMINATED SETTLED";
    expect(rows, "markets", "state", "STATE_", states);
    expect(rows, "market_data", "market_state", "STATE_", states);
    let modes = "CONTINUOUS BATCH_AUCTION OPENING_AUCTION MONITORING_AUCTION NO_TRADING";
    expect(rows, "markets", "trading_mode", "TRADING_MODE_", modes);
    expect(rows, "market_data", "market_trading_mode", "TRADING_MODE_", modes);
    let triggers =
        "UNSPECIFIED BATCH OPENING PRICE LIQUIDITY LIQUIDITY_TARGET_NOT_MET UNABLE_TO_DEPLOY_LP_ORDERS";
    expect(rows, "market_data", "auction_trigger", "AUCTION_TRIGGER_", triggers);
    let again = "UNSPECIFIED PRICE LIQUIDITY_TARGET_NOT_MET";
    expect(rows, "market_data", "extension_trigger", "AUCTION_TRIGGER_", again);
    let transfers = "LOSS WIN MTM_LOSS MTM_WIN MARGIN_LOW MARGIN_HIGH MARGIN_CONFISCATED MAKER_FEE_PAY \
        MAKER_FEE_RECEIVE INFRASTRUCTURE_FEE_PAY INFRASTRUCTURE_FEE_DISTRIBUTE LIQUIDITY_FEE_PAY \
        LIQUIDITY_FEE_DISTRIBUTE BOND_LOW BOND_HIGH WITHDRAW DEPOSIT BOND_SLASHING REWARD_PAYOUT \
        TRANSFER_FUNDS_SEND TRANSFER_FUNDS_DISTRIBUTE CLEAR_ACCOUNT CHECKPOINT_BALANCE_RESTORE";
    expect(rows, "ledger", "type", "TRANSFER_TYPE_", transfers);
    let rewards = "GLOBAL_REWARD FEES_INFRASTRUCTURE REWARD_MAKER_PAID_FEES REWARD_MAKER_RECEIVED_FEES \
        REWARD_LP_RECEIVED_FEES REWARD_MARKET_PROPOSERS";
    expect(rows, "rewards", "reward_type", "ACCOUNT_TYPE_", rewards);
}

fn every_number_occurs(rows: &Rows) {
    expect(rows, "accounts", "type", "", "1 2 3 4 5 6 7 9 10 11 12 13 14 15 16 17");
    expect(rows, "orders", "side", "", "1 2");
    expect(rows, "orders", "time_in_force", "", "0 1 2 3 4 5 6");
    expect(rows, "orders", "type", "", "1 2 3");
    expect(rows, "orders", "status", "", "1 2 3 4 5 6 7 8");
    expect(rows, "orders", "pegged_reference", "", "0 1 2 3");
    expect(rows, "trades", "aggressor", "", "0 1 2");
    expect(rows, "trades", "type", "", "1 2 3");
    let reasons = census(rows, "orders", "reason").len();
    assert!(reasons > 12, "{reasons} order errors");
    for column in ["post_only", "reduce_only"] {
        expect(rows, "orders", column, "", "t f");
    }
    assert!(census(rows, "orders", "version").len() > 3);
    assert!(census(rows, "orders", "batch_id").len() > 100);
    assert!(census(rows, "trades", "buyer_auction_batch").len() > 2);
}

fn traps_of_csv_occur(rows: &Rows) {
    let references = texts(rows, "orders", "reference");
    for text in
        ["", "NULL", "\\N", "\\.", "carriage\r\nreturn", "line one\nline two", "\r", "\"", "a, b and c"]
    {
        assert!(references.contains(&text), "no order has the reference {text:?}");
    }
    assert!(references.iter().any(|text| !text.is_ascii()));
    let notices = Parsed::new(rows, "network_parameters");
    let notices: Vec<&str> = notices
        .rows
        .iter()
        .filter(|row| notices.text(row, "key") == "network.notice")
        .map(|row| notices.text(row, "value"))
        .collect();
    assert_eq!(notices[0], "");
    assert!(notices.iter().any(|notice| notice.contains("\"please\" close positions\r\n")));
    for (table, column) in [
        ("liquidity_provisions", "reference"),
        ("markets", "instrument_id"),
        ("orders", "lp_id"),
        ("positions", "tx_hash"),
    ] {
        assert!(census(rows, table, column).contains_key(&Some("")), "{column}");
    }
    let slippage = census(rows, "markets", "quadratic_slippage_factor");
    assert!(slippage.contains_key(&None) && slippage.contains_key(&Some("0.1")));
    let bounds = census(rows, "market_data", "price_monitoring_bounds");
    assert!(bounds.len() > 2 && bounds.contains_key(&Some("null")));
    let widest = |table, column| texts(rows, table, column).into_iter().map(str::len).max().unwrap();
    assert!(widest("balances", "balance") >= 27);
    assert_eq!(widest("deposits", "amount"), 78);
    assert!(widest("rewards", "percent_of_total") >= 16);
    assert!(
        census(rows, "positions", "average_entry_market_price").keys().flatten().any(|v| v.contains('.'))
    );
    for fee in census(rows, "liquidity_provisions", "fee").keys().flatten() {
        assert_eq!(fee.split_once('.').unwrap().1.len(), 16);
    }
}

fn withdrawals_and_deposits_go_every_way(rows: &Rows) {
    let withdrawals = Parsed::new(rows, "withdrawals");
    let mut ways: BTreeMap<&str, String> = BTreeMap::new();
    for row in withdrawals.rows {
        let status = withdrawals.text(row, "status");
        let final_now = status == "STATUS_FINALIZED";
        assert_eq!(withdrawals.text(row, "foreign_tx_hash").len(), if final_now { 66 } else { 0 });
        assert_eq!(withdrawals.text(row, "withdrawn_timestamp") == "1970-01-01 00:00:00+00", !final_now);
        *ways.entry(withdrawals.text(row, "id")).or_default() += status;
    }
    let ways: BTreeSet<String> = ways.into_values().collect();
    let expected = ["STATUS_OPEN", "STATUS_OPENSTATUS_FINALIZED", "STATUS_OPENSTATUS_REJECTED"];
    assert_eq!(ways, expected.map(str::to_owned).into());
    let ext = withdrawals.census("ext");
    assert!(ext.contains_key(&Some("{}")));
    assert!(ext.keys().flatten().any(|ext| ext.starts_with("{\"erc20\":{\"receiverAddress\":\"0x")));
    assert!(withdrawals.census("ref").contains_key(&Some("")));
}

fn oracle_specs_have_every_form(rows: &Rows) {
    let specs = Parsed::new(rows, "oracle_specs");
    for row in specs.rows {
        let inside = specs.value(row, "internal_conditions").is_some();
        assert_eq!(inside, specs.value(row, "signers").is_none());
        assert_eq!(inside, specs.value(row, "filters").is_none());
    }
    let columns = ["signers", "filters", "internal_conditions"];
    let all: String = columns.iter().flat_map(|column| specs.census(column).into_keys().flatten()).collect();
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
    let mut counts: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut states: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for row in upgrades.rows {
        let approvers = upgrades.text(row, "approvers");
        let approvers: Vec<&str> =
            approvers[1..approvers.len() - 1].split(',').filter(|a| !a.is_empty()).collect();
        assert!(approvers.is_sorted());
        let key = (upgrades.text(row, "upgrade_block_height"), upgrades.text(row, "network_release_tag"));
        counts.entry(key).or_default().push(approvers.len());
        states.entry(key).or_default().push(upgrades.text(row, "status").rsplit_once('_').unwrap().1);
    }
    assert!(counts.len() >= 12);
    assert_eq!(states[&("3000", "v0.2.0")].last(), Some(&"APPROVED"));
    assert!(
        counts.values().any(|counts| counts.windows(2).all(|pair| pair[0] < pair[1]) && counts.len() > 5)
    );
    assert!(states.values().any(|states| states.windows(2).any(|pair| pair == ["REJECTED", "PENDING"])));
    assert!(states.values().any(|states| states.last() == Some(&"PENDING")));
    let heights: BTreeSet<&str> = counts.keys().map(|key| key.0).collect();
    assert!(heights.len() < counts.len(), "some tags share a height");
}

fn parameters_and_limits_change(rows: &Rows) {
    let parameters = Parsed::new(rows, "network_parameters");
    let values = |key: &str| -> Vec<&str> {
        let of_key = parameters.rows.iter().filter(|row| parameters.text(row, "key") == key);
        of_key.map(|row| parameters.text(row, "value")).collect()
    };
    assert_eq!(values("spam.pow.difficulty"), ["15", "16", "15"]);
    assert_eq!(values("spam.pow.numberOfTxPerBlock"), ["2", "3", "2"]);
    assert!(rows.records("network_limits").len() >= 5);
    let enabled = census(rows, "network_limits", "propose_asset_enabled_from");
    assert!(enabled.len() > 1);
}

fn epochs_and_rewards_follow_each_other(rows: &Rows) {
    let epochs = Parsed::new(rows, "epochs");
    assert_eq!(epochs.rows.len(), 99, "fifty starts and forty-nine ends");
    let delegations = Parsed::new(rows, "delegations");
    let mut seen = BTreeMap::<_, u64>::new();
    for row in delegations.rows {
        let key = ["party_id", "node_id", "epoch_id"].map(|column| delegations.text(row, column));
        *seen.entry(key).or_default() += 1;
    }
    assert!(seen.values().any(|count| *count > 1), "some delegation changes within its epoch");
    assert!(delegations.census("amount").contains_key(&Some("0")));
    let markets = census(rows, "rewards", "market_id");
    assert!(markets.len() > 4 && markets.contains_key(&Some("")));
    assert_eq!(census(rows, "rewards", "asset_id").len(), 4);
    assert!(census(rows, "rewards", "epoch_id").len() >= 48);
}

/// Prices move within bounds in each hour, and busy hours have more trades than quiet ones.
fn candles_look_real(rows: &Rows) {
    let trades = Parsed::new(rows, "trades");
    let mut busy = BTreeMap::<i128, i128>::new();
    let mut hours: BTreeMap<(&str, &str), (i128, i128, u64)> = BTreeMap::new();
    for row in trades.rows {
        let hour = &trades.text(row, "synthetic_time")[..13];
        *busy.entry(hour[11..].parse().unwrap()).or_default() += 1;
        let price = trades.number(row, "price");
        let candle = hours.entry((trades.text(row, "market_id"), hour)).or_insert((price, price, 0));
        *candle = (candle.0.min(price), candle.1.max(price), candle.2 + 1);
    }
    assert!(hours.len() > 140, "{} hourly candles", hours.len());
    let moving = hours.values().filter(|(low, high, _)| high > low).count();
    assert!(moving * 10 > hours.len() * 9);
    for (key, (low, high, _)) in &hours {
        assert!(high * 100 < low * 112, "{key:?} goes from {low} to {high}");
    }
    assert!(busy[&15] > busy[&5], "{busy:?}");
}
