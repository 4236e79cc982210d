//! Random lists with many equal values in every column of their keys: the SQL that fills the store, and the
//! expected rows, computed here from the same values.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::paging::{
    list::{FIRST_TRADE_S, List, MARKET, Row, number, text},
    page::View,
};

/// Ids that differ in their first or last digit only.
const IDS: [&str; 4] = [
    "0000000000000000000000000000000000000000000000000000000000000001",
    "0000000000000000000000000000000000000000000000000000000000000002",
    "1000000000000000000000000000000000000000000000000000000000000000",
    "f000000000000000000000000000000000000000000000000000000000000000",
];
/// Texts whose byte order differs from that of any language.
const TAGS: [&str; 8] = ["", "v1.10.0", "v1.2.0", "V1.2.0", "v1 2", "é", "z\u{301}", "🚀\"'\\"];
const ASSETS: [&str; 4] = [IDS[0], IDS[3], "VOTE", "vote_2"];
const REWARD_TYPES: [&str; 3] =
    ["ACCOUNT_TYPE_FEES_INFRASTRUCTURE", "ACCOUNT_TYPE_GLOBAL_REWARD", "another type"];
const STATUSES: [&str; 3] = ["PENDING", "APPROVED", "REJECTED"];
const APPROVERS: [&str; 3] = ["abc", "kéy", "xyz"];

/// SQL that writes the rows of a list in random order, and the views that are tested.
pub(crate) fn views(list: List, random: &mut SmallRng) -> (String, Vec<View>) {
    match list {
        List::Proposals => proposals(random),
        List::Candles => candles(random),
        List::Summaries => summaries(random),
        List::Delegations => delegations(random),
        List::Markets => markets(random),
        List::Assets => assets(random),
        List::Trades => trades(random),
        List::Positions => positions(random),
    }
}

fn one_of<'a>(values: &[&'a str], random: &mut SmallRng) -> &'a str {
    values.choose(random).unwrap()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn timestamp(us: i64) -> String {
    format!("to_timestamp(0) + {us} * interval '1 us'")
}

fn delegations(random: &mut SmallRng) -> (String, Vec<View>) {
    let mut latest = BTreeMap::new();
    let mut values = Vec::new();
    for seq_num in 0..90 {
        let key = (random.random_range(0..4), one_of(&IDS, random), one_of(&IDS[..3], random));
        let block = random.random_range(1..9);
        let amount = random.random_bool(0.8).then(|| random.random_range(0..i64::MAX).to_string());
        let (epoch, party, node) = key;
        let stored = amount.as_deref().unwrap_or("NULL");
        values
            .push(format!("('{party}', '{node}', {epoch}, {stored}, 'tx', {}, {seq_num})", timestamp(block)));
        let newest = latest.entry(key).or_insert(((block, seq_num), amount.clone()));
        if newest.0 <= (block, seq_num) {
            *newest = ((block, seq_num), amount);
        }
    }
    let view = |filters: &str, passes: &dyn Fn(i64, &str, &str) -> bool| {
        let found = latest.iter().filter(|((epoch, party, node), _)| passes(*epoch, party, node));
        let rows = found.map(|((epoch, party, node), (_, amount))| Row {
            key: vec![number(*epoch), text(party), text(node)],
            node: json!({
                "party": party, "nodeId": node, "amount": amount.as_deref().unwrap_or("0"),
                "epochSeq": epoch.to_string(),
            }),
        });
        View::new(List::Delegations, filters, rows.collect())
    };
    let (party, node) = (IDS[1], IDS[2]);
    let views = vec![
        view("", &|_, _, _| true),
        view(&format!("partyId={party}"), &|_, row, _| row == party),
        view(&format!("nodeId={node}"), &|_, _, row| row == node),
        view("epochId=2", &|row, _, _| row == 2),
        view(&format!("partyId={party}&epochId=1"), &|epoch, row, _| row == party && epoch == 1),
        view(&format!("nodeId={node}&epochId=3"), &|epoch, _, row| row == node && epoch == 3),
        view(&format!("partyId={party}&nodeId={node}"), &|_, one, other| one == party && other == node),
        view("epochId=77", &|_, _, _| false),
    ];
    (insert("delegations", &values), views)
}

fn summaries(random: &mut SmallRng) -> (String, Vec<View>) {
    let mut sums: BTreeMap<_, u128> = BTreeMap::new();
    let mut values = Vec::new();
    let markets = ["", IDS[0], IDS[1], IDS[3]];
    for seq_num in 0..120 {
        let key = (
            random.random_range(0..4_i64),
            one_of(&markets, random),
            one_of(&ASSETS, random),
            one_of(&REWARD_TYPES, random),
        );
        let amount = random.random_bool(0.8).then(|| random.random_range(0..u64::MAX));
        *sums.entry(key).or_default() += u128::from(amount.unwrap_or(0));
        let (epoch, market, asset, reward_type) = key;
        let stored = amount.map_or("NULL".to_owned(), |amount| amount.to_string());
        let party = one_of(&IDS, random);
        let time = timestamp(random.random_range(1..9));
        let reward = format!("'{party}', '{asset}', '{market}', '{reward_type}', {epoch}, {stored}, 0.5");
        values.push(format!("({reward}, {time}, 'tx', {time}, {seq_num})"));
    }
    let view = |filters: &str, passes: &dyn Fn(i64, &str, &str) -> bool| {
        let found = sums.iter().filter(|((epoch, market, asset, _), _)| passes(*epoch, market, asset));
        let rows = found.map(|((epoch, market, asset, reward_type), amount)| Row {
            key: vec![number(*epoch), text(market), text(asset), text(reward_type)],
            node: json!({
                "epoch": epoch.to_string(), "assetId": asset, "marketId": market, "rewardType": reward_type,
                "amount": amount.to_string(),
            }),
        });
        View::new(List::Summaries, filters, rows.collect())
    };
    let (market, other, asset) = (IDS[0], IDS[3], "VOTE");
    let of_assets = format!("filter.assetIds={asset}&filter.assetIds={}&filter.assetIds={asset}", ASSETS[1]);
    let of_both = format!("filter.assetIds={asset}&filter.marketIds={market}&filter.marketIds={other}");
    let views = vec![
        view("", &|_, _, _| true),
        view("filter.fromEpoch=1&filter.toEpoch=2", &|epoch, _, _| (1..=2).contains(&epoch)),
        view("filter.toEpoch=1", &|epoch, _, _| epoch <= 1),
        view(&of_assets, &|_, _, row| row == asset || row == ASSETS[1]),
        view(&format!("filter.marketIds={market}"), &|_, row, _| row == market),
        view(&format!("filter.marketIds={market}&filter.fromEpoch=2"), &|epoch, row, _| {
            row == market && epoch >= 2
        }),
        view(&of_both, &|_, one, two| (one == market || one == other) && two == asset),
        view("filter.assetIds=unknown", &|_, _, _| false),
    ];
    (insert("rewards", &values), views)
}

fn proposals(random: &mut SmallRng) -> (String, Vec<View>) {
    let mut latest = BTreeMap::new();
    let mut values = Vec::new();
    for time in 1..70 {
        let key = (*[1, 2, 300, i64::MAX].choose(random).unwrap(), one_of(&TAGS, random));
        let (height, tag) = key;
        let approvers: Vec<&str> = APPROVERS.into_iter().filter(|_| random.random()).collect();
        let status = format!("PROTOCOL_UPGRADE_PROPOSAL_STATUS_{}", one_of(&STATUSES, random));
        let list = approvers.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(", ");
        let tag = quoted(tag);
        values
            .push(format!("({height}, {tag}, ARRAY[{list}]::text[], '{status}', 'tx', {})", timestamp(time)));
        latest.insert(key, (approvers, status));
    }
    let view = |filters: &str, passes: &dyn Fn(&[&str], &str) -> bool| {
        let found = latest.iter().filter(|(_, (approvers, status))| passes(approvers, status));
        let rows = found.map(|((height, tag), (approvers, status))| Row {
            key: vec![number(*height), text(tag)],
            node: json!({
                "upgradeBlockHeight": height.to_string(), "networkReleaseTag": tag, "approvers": approvers,
                "status": status,
            }),
        });
        View::new(List::Proposals, filters, rows.collect())
    };
    let views = vec![
        view("", &|_, _| true),
        view("status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED", &|_, status| status.ends_with("APPROVED")),
        view("status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED", &|_, _| true),
        view("approvedBy=ABC", &|approvers, _| approvers.contains(&"abc")),
        view("approvedBy=K%C3%89Y&status=3", &|approvers, status| {
            approvers.contains(&"kéy") && status.ends_with("REJECTED")
        }),
        view("approvedBy=unknown", &|_, _| false),
    ];
    (insert("protocol_upgrade_proposals", &values), views)
}

/// A candle, updated trade by trade.
struct Candle {
    open: (i64, u64),
    close: (i64, u64),
    high: u64,
    low: u64,
    volume: u64,
}

fn candles(random: &mut SmallRng) -> (String, Vec<View>) {
    const MINUTE_US: i64 = 60_000_000;
    let start_us = 1_687_255_200_000_000;
    let mut candles_by_key: BTreeMap<(&str, &str, i64), Candle> = BTreeMap::new();
    let mut values = Vec::new();
    let mut block = start_us;
    let markets = [MARKET, IDS[0]];
    while values.len() < 140 {
        block += *[7, 1_000_000, MINUTE_US, 3 * MINUTE_US + 1].choose(random).unwrap();
        for seq_num in 0..random.random_range(1..4) {
            let (time, market) = (block + seq_num, one_of(&markets, random));
            let (price, size) = (random.random_range(1..9), random.random_range(0..1_000_000_u64));
            let (stored, block_time) = (timestamp(time), timestamp(block));
            let ids = "'b', 's', 1, 'bo', 'so', 1";
            values.push(format!(
                "({stored}, 'tx', {block_time}, {seq_num}, 'id', '{market}', {price}, {size}, {ids})"
            ));
            for (interval, start) in [("block", block), ("1_minute", time - time.rem_euclid(MINUTE_US))] {
                let fresh =
                    Candle { open: (time, price), close: (time, price), high: price, low: price, volume: 0 };
                let candle = candles_by_key.entry((interval, market, start)).or_insert(fresh);
                candle.open = candle.open.min((time, price));
                candle.close = candle.close.max((time, price));
                (candle.high, candle.low) = (candle.high.max(price), candle.low.min(price));
                candle.volume += size;
            }
        }
        block += 3;
    }
    let rows = |interval: &str, from: i64, to: i64| -> Vec<Row> {
        let found = candles_by_key.iter().filter(|((kind, market, start), _)| {
            (*kind, *market) == (interval, MARKET) && (from..to).contains(start)
        });
        let row = |((_, _, start), candle): (&(&str, &str, i64), &Candle)| Row {
            key: vec![number(start * 1000)],
            node: json!({
                "start": (start * 1000).to_string(), "lastUpdate": (candle.close.0 * 1000).to_string(),
                "open": candle.open.1.to_string(), "close": candle.close.1.to_string(),
                "high": candle.high.to_string(), "low": candle.low.to_string(), "volume": candle.volume.to_string(),
            }),
        };
        found.map(row).collect()
    };
    let (from, to) = (start_us + 20 * MINUTE_US, start_us + 60 * MINUTE_US);
    let between = format!("&fromTimestamp={}&toTimestamp={}", from * 1000, to * 1000);
    let mut of_blocks = View::new(List::Candles, "", rows("block", 0, i64::MAX));
    of_blocks.path = of_blocks.path.replace("1_minute", "block");
    let views = vec![
        View::new(List::Candles, "", rows("1_minute", 0, i64::MAX)),
        View::new(List::Candles, &between, rows("1_minute", from, to)),
        View::new(List::Candles, "&toTimestamp=1", Vec::new()),
        of_blocks,
    ];
    (insert("trades", &values), views)
}

/// A market: its latest definition, and its latest data.
#[derive(Default)]
struct Market {
    definition: (i64, Value),
    data: (i64, i64, Option<u64>),
}

fn markets(random: &mut SmallRng) -> (String, Vec<View>) {
    let states = ["STATE_ACTIVE", "STATE_SETTLED", "STATE_PENDING"];
    let mut markets: BTreeMap<String, Market> = BTreeMap::new();
    let (mut definitions, mut data) = (Vec::new(), Vec::new());
    let mut used = BTreeSet::new();
    for _ in 0..90 {
        let id = format!("{:064x}", random.random_range(0..40));
        let block = random.random_range(1..20);
        if !used.insert((id.clone(), block)) {
            continue;
        }
        let (state, asset) = (one_of(&states, random), one_of(&ASSETS, random));
        let (name, places) = (one_of(&TAGS, random), random.random_range(-2..19));
        let instrument = json!({
            "instrument": { "code": "code", "name": name, "future": { "settlementAsset": asset, "quoteName": "Q" } },
        });
        let instrument = quoted(&instrument.to_string());
        let time = timestamp(block);
        let places_and_mode = format!("{places}, NULL, NULL, NULL, NULL, 'TRADING_MODE_CONTINUOUS'");
        let opened = random.random_bool(0.5).then(|| random.random_range(1..i64::MAX));
        let times = quoted(&json!({ "open": opened.unwrap_or(-1) }).to_string());
        definitions.push(format!(
            "('{id}', 'tx', {time}, '', {instrument}, {places_and_mode}, '{state}', {times}, {places})"
        ));
        let mut node = json!({
            "id": id, "code": "code", "name": name, "quoteName": "Q", "settlementAsset": asset,
            "decimalPlaces": places, "positionDecimalPlaces": places,
            "tradingMode": "TRADING_MODE_CONTINUOUS", "state": state,
        });
        if let Some(opened) = opened {
            node["openedAt"] = json!(opened.to_string());
        }
        let market = markets.entry(id).or_default();
        if market.definition.0 < block {
            market.definition = (block, node);
        }
    }
    for number in 0..60 {
        let id = format!("{:064x}", random.random_range(0..40));
        let (block, seq_num) = (random.random_range(1..20) * 1_000, number);
        let price = random.random_bool(0.8).then(|| random.random());
        let stored = price.map_or("NULL".to_owned(), |price: u64| price.to_string());
        let [time, at] = [block, block + seq_num].map(timestamp);
        data.push(format!(
            "({at}, 'tx', {time}, {seq_num}, '{id}', {stored}, 1, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3)"
        ));
        if let Some(market) = markets.get_mut(&id)
            && (market.data.0, market.data.1) <= (block, seq_num)
        {
            market.data = (block, seq_num, price);
        }
    }
    let view = |filters: &str, passes: &dyn Fn(&Value) -> bool| {
        let found = markets.iter().filter(|(_, market)| passes(&market.definition.1));
        let rows = found.map(|(id, market)| {
            let mut node = market.definition.1.clone();
            let (block, _, price) = market.data;
            let figures = match block {
                0 => [String::new(), String::new(), String::new(), String::new()],
                _ => {
                    let price = price.map(|price| price.to_string()).unwrap_or_default();
                    [price, "1".to_owned(), "2".to_owned(), "3".to_owned()]
                }
            };
            for (name, figure) in
                ["markPrice", "bestBidPrice", "bestOfferPrice", "openInterest"].into_iter().zip(figures)
            {
                node[name] = json!(figure);
            }
            Row { key: vec![text(id)], node }
        });
        View::new(List::Markets, filters, rows.collect())
    };
    let views = vec![
        view("", &|_| true),
        view("state=STATE_ACTIVE", &|node| node["state"] == "STATE_ACTIVE"),
        view("settlementAsset=VOTE", &|node| node["settlementAsset"] == "VOTE"),
        view(&format!("state=9&settlementAsset={}", ASSETS[1]), &|node| {
            node["state"] == "STATE_SETTLED" && node["settlementAsset"] == ASSETS[1]
        }),
        view("state=STATE_CLOSED", &|_| false),
    ];
    (insert("markets", &definitions) + &insert("market_data", &data), views)
}

fn assets(random: &mut SmallRng) -> (String, Vec<View>) {
    let statuses = ["STATUS_PROPOSED", "STATUS_PENDING_LISTING", "STATUS_ENABLED"];
    let mut latest: BTreeMap<String, (i64, Value)> = BTreeMap::new();
    let mut values = Vec::new();
    let mut used = BTreeSet::new();
    for _ in 0..80 {
        let id = match random.random_range(0..30) {
            0 => "VOTE".to_owned(),
            1 => "vote_2".to_owned(),
            number => format!("{number:064x}"),
        };
        let block = random.random_range(1..20);
        if !used.insert((id.clone(), block)) {
            continue;
        }
        let (name, status) = (one_of(&TAGS, random), one_of(&statuses, random));
        let decimals: Option<i32> = random.random_bool(0.8).then(|| random.random_range(0..19));
        let stored = decimals.map_or("NULL".to_owned(), |decimals| decimals.to_string());
        let named = format!("'{id}', {}, 'S', {stored}, 7, '', NULL, 0, 0", quoted(name));
        values.push(format!("({named}, '{status}', 'tx', {})", timestamp(block)));
        let node = json!({
            "id": id, "name": name, "symbol": "S", "decimals": decimals.unwrap_or(0), "quantum": "7",
            "status": status, "erc20Contract": "",
        });
        let newest = latest.entry(id).or_default();
        if newest.0 < block {
            *newest = (block, node);
        }
    }
    let view = |filters: &str, passes: &dyn Fn(&Value) -> bool| {
        let found = latest.iter().filter(|(_, (_, node))| passes(node));
        let rows = found.map(|(id, (_, node))| Row { key: vec![text(id)], node: node.clone() });
        View::new(List::Assets, filters, rows.collect())
    };
    let views = vec![
        view("", &|_| true),
        view("status=STATUS_ENABLED", &|node| node["status"] == "STATUS_ENABLED"),
        view("status=1", &|node| node["status"] == "STATUS_PROPOSED"),
        view("status=STATUS_REJECTED", &|_| false),
    ];
    (insert("assets", &values), views)
}

fn trades(random: &mut SmallRng) -> (String, Vec<View>) {
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let parties = ["network", IDS[0], IDS[1], IDS[3]];
    let start_us = FIRST_TRADE_S * 1_000_000;
    let mut time_us = start_us;
    for place in 0..120 {
        time_us += *[1, 7, 1_000_000, 60_000_000].choose(random).unwrap();
        let (market, buyer, seller) =
            (one_of(&IDS[..3], random), one_of(&parties, random), one_of(&parties, random));
        let (size, aggressor) = (random.random_range(0..i64::MAX), random.random_range(0..3_usize));
        let (id, time) = (format!("{place:064x}"), timestamp(time_us));
        values.push(format!(
            "({time}, 'tx', {time}, 0, '{id}', '{market}', {place}, {size}, '{buyer}', '{seller}', {aggressor}, \
             'bo', 'so', 1)"
        ));
        let ns = time_us * 1_000;
        let side = ["SIDE_UNSPECIFIED", "SIDE_BUY", "SIDE_SELL"][aggressor];
        let node = json!({
            "id": id, "marketId": market, "price": place.to_string(), "size": size.to_string(),
            "buyer": buyer, "seller": seller,
            "aggressor": side, "buyOrder": "bo", "sellOrder": "so", "type": "TYPE_DEFAULT", "timestamp": ns.to_string(),
        });
        rows.push(Row { key: vec![number(ns)], node });
    }
    let view = |filters: &str, passes: &dyn Fn(&Value, i64) -> bool| {
        let ns = |row: &&Row| row.node["timestamp"].as_str().unwrap().parse().unwrap();
        let found = rows.iter().filter(|row| passes(&row.node, ns(row)));
        View::new(List::Trades, filters, found.cloned().collect())
    };
    let (market, party) = (IDS[1], IDS[0]);
    let of_party = |node: &Value| node["buyer"] == party || node["seller"] == party;
    let end = (start_us + 600_000_000) * 1_000 + 1;
    let views = vec![
        view("", &|_, _| true),
        view(&format!("&marketId={market}"), &|node, _| node["marketId"] == market),
        view(&format!("&partyId={party}"), &|node, _| of_party(node)),
        view("&partyId=network", &|node, _| node["buyer"] == "network" || node["seller"] == "network"),
        view(&format!("&partyId={party}&marketId={market}"), &|node, _| {
            of_party(node) && node["marketId"] == market
        }),
        view(&format!("&dateRange.endTimestamp={end}"), &|_, ns| ns < end),
        view(&format!("&partyId={party}&dateRange.endTimestamp={end}"), &|node, ns| {
            of_party(node) && ns < end
        }),
        view(&format!("&partyId={}", IDS[2]), &|_, _| false),
    ];
    (insert("trades", &values), views)
}

fn positions(random: &mut SmallRng) -> (String, Vec<View>) {
    let mut latest: BTreeMap<(String, &str), (i64, Value)> = BTreeMap::new();
    let mut values = Vec::new();
    let mut used = BTreeSet::new();
    let ids: Vec<String> = (0..12).map(|id| format!("{id:064x}")).chain(["network".to_owned()]).collect();
    for _ in 0..150 {
        let (party, market) = (ids.choose(random).unwrap(), one_of(&IDS, random));
        let block = random.random_range(1..20);
        if !used.insert((party.clone(), market, block)) {
            continue;
        }
        let (volume, profit) = (random.random::<i64>(), format!("{}.5000", random.random_range(-9..9)));
        let held = format!("'{market}', '{party}', {volume}, {profit}, 0, 12345678901234567890, 0, 0, 0");
        let (now, paid) = (random.random::<i64>(), random.random_range(-9..9));
        let pending =
            format!("{now}, {paid}.5, 0, 0, 12345678901234567890, 0, 'POSITION_STATUS_UNSPECIFIED'");
        values.push(format!("({held}, 'tx', {}, {pending})", timestamp(block)));
        let node = json!({
            "marketId": market, "partyId": party, "openVolume": now.to_string(),
            // Half away from zero.
            "realisedPnl": (if paid < 0 { paid - 1 } else { paid + 1 }).to_string(),
            "unrealisedPnl": "0", "averageEntryPrice": "12345678901234567890",
            "updatedAt": (block * 1_000).to_string(), "lossSocialisationAmount": "0",
            "status": "POSITION_STATUS_UNSPECIFIED",
            "settled": {
                "openVolume": volume.to_string(), "realisedPnl": profit, "unrealisedPnl": "0",
                "averageEntryPrice": "12345678901234567890",
            },
        });
        let newest = latest.entry((party.clone(), market)).or_default();
        if newest.0 < block {
            *newest = (block, node);
        }
    }
    let view = |filters: &str, passes: &dyn Fn(&str, &str) -> bool| {
        let found = latest.iter().filter(|((party, market), _)| passes(party, market));
        let rows = found.map(|((party, market), (_, node))| Row {
            key: vec![text(party), text(market)],
            node: node.clone(),
        });
        View::new(List::Positions, filters, rows.collect())
    };
    let (party, market) = (&ids[2], IDS[1]);
    let views = vec![
        view("", &|_, _| true),
        view(&format!("partyId={party}"), &|row, _| row == party),
        view("partyId=network", &|row, _| row == "network"),
        view(&format!("marketId={market}"), &|_, row| row == market),
        view(&format!("partyId={party}&marketId={market}"), &|one, other| one == party && other == market),
        view(&format!("marketId={MARKET}"), &|_, _| false),
    ];
    (insert("positions", &values), views)
}

/// Several INSERT statements of a few rows each, so that later ones update rows of earlier ones.
fn insert(table: &str, values: &[String]) -> String {
    values.chunks(11).map(|rows| format!("INSERT INTO {table} VALUES {};\n", rows.join(", "))).collect()
}
