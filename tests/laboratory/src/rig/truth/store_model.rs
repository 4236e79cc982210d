//! A model of the store: the written rows, and the answers that clients must get for them. It is
//! based on the contract and the table definitions, and uses none of the product's SQL statements.

use std::collections::{BTreeMap, HashMap};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::rows::{ASSET, AccountKey, GENESIS_S, Row, account, bits, id, party};

const MICROS: i64 = 1_000_000;
const HOUR_US: i64 = 3600 * MICROS;

/// The newest version of a value; `at` is its block time in seconds and its sequence number.
#[derive(Debug, Clone)]
struct Latest<T> {
    at: (i64, i64),
    value: T,
}

fn update_latest<K: Ord, T>(values: &mut BTreeMap<K, Latest<T>>, key: K, at: (i64, i64), value: T) {
    if values.get(&key).is_none_or(|latest| at >= latest.at) {
        values.insert(key, Latest { at, value });
    }
}

#[derive(Debug, Clone)]
struct Candle {
    open: i64,
    close: i64,
    high: i64,
    low: i64,
    volume: i64,
    first_us: i64,
    last_us: i64,
}

/// The content of the store.
#[derive(Debug, Clone, Default)]
pub(super) struct StoreModel {
    pub(super) height: i64,
    accounts: BTreeMap<AccountKey, i64>,
    balances: BTreeMap<i64, Latest<i64>>,
    delegations: BTreeMap<(i64, String, String), Latest<i64>>,
    withdrawals: BTreeMap<i64, Latest<(&'static str, i64)>>,
    oracle_specs: BTreeMap<i64, Latest<&'static str>>,
    rewards: BTreeMap<(i64, String, &'static str), i64>,
    candles: HashMap<(&'static str, i64), BTreeMap<i64, Candle>>,
    proposals: BTreeMap<i64, Latest<(Vec<String>, &'static str)>>,
    limits: BTreeMap<(), Latest<i64>>,
}

impl StoreModel {
    /// Whether an account exists.
    pub(super) fn has_account(&self, number: i64) -> bool {
        self.accounts.values().any(|known| *known == number)
    }

    /// Applies a row.
    pub(super) fn apply(&mut self, row: &Row) {
        match row.clone() {
            Row::Block { height } => self.height = height,
            Row::Account { number } => {
                self.accounts.insert(account(number).0, number);
            }
            Row::Balance { account, at, balance } => {
                update_latest(&mut self.balances, account, (at, 0), balance);
            }
            Row::Delegation { epoch, party: number, node, at, sequence, amount } => {
                let key = (epoch, party(number), id('c', node));
                update_latest(&mut self.delegations, key, (at, sequence), amount);
            }
            Row::Withdrawal { number, at, status, reference } => {
                update_latest(&mut self.withdrawals, number, (at, 0), (status, reference));
            }
            Row::OracleSpec { number, at, status } => {
                update_latest(&mut self.oracle_specs, number, (at, 0), status);
            }
            Row::Reward { epoch, market, kind, amount, .. } => {
                *self.rewards.entry((epoch, id('a', market), kind)).or_default() += amount;
            }
            Row::Trade { market, at, micros, price, size } => {
                let time_us = at * MICROS + micros;
                for (interval, start) in [("block", at * MICROS), ("1_hour", time_us / HOUR_US * HOUR_US)] {
                    let candles = self.candles.entry((interval, market)).or_default();
                    candles
                        .entry(start)
                        .or_insert_with(|| Candle::new(time_us, price))
                        .add(time_us, price, size);
                }
            }
            Row::Proposal { height, approvers, status, at } => {
                update_latest(&mut self.proposals, height, (at, 0), (approvers, status));
            }
            Row::Limits { at, flags } => update_latest(&mut self.limits, (), (at, 0), flags),
        }
    }

    fn accounts(&self, predicate: impl Fn(&str, &str) -> bool) -> Value {
        let shown = self.accounts.iter().filter(|((_, party, market, ..), _)| predicate(party, market));
        let shown = shown.map(|((_, party, market, asset, _), number)| {
            let balance = self.balances.get(number).map_or(0, |latest| latest.value).to_string();
            let (_, kind) = account(*number);
            json!({ "party": party, "market": market, "balance": balance, "asset": asset, "type": kind })
        });
        json!({ "accounts": shown.collect::<Vec<_>>() })
    }

    fn delegations(&self, predicate: impl Fn(i64, &str) -> bool, first: usize) -> Value {
        let rows = self.delegations.iter().rev().filter(|((epoch, party, _), _)| predicate(*epoch, party));
        let rows = rows.map(|((epoch, party, node), latest)| {
            let key = vec![epoch.to_string(), party.clone(), node.clone()];
            let amount = latest.value.to_string();
            (key, json!({ "party": party, "nodeId": node, "amount": amount, "epochSeq": epoch.to_string() }))
        });
        json!({ "delegations": page("delegation", rows, first) })
    }

    fn withdrawal(&self, number: i64) -> Value {
        let (status, reference) = self.withdrawals[&number].value;
        json!({ "withdrawal": {
            "id": id('d', number), "partyId": party(1), "amount": "250", "asset": ASSET, "status": status,
            "ref": reference.to_string(), "txHash": "", "createdTimestamp": ns(GENESIS_S * MICROS),
            "withdrawnTimestamp": "0", "ext": {},
        } })
    }

    fn oracle_spec(&self, number: i64) -> Value {
        let Latest { at, value: status } = &self.oracle_specs[&number];
        json!({ "oracleSpec": { "externalDataSourceSpec": { "spec": {
            "id": id('e', number), "createdAt": ns(GENESIS_S * MICROS), "updatedAt": ns(at.0 * MICROS),
            "status": status, "data": { "external": { "oracle": { "signers": [], "filters": [] } } },
        } } } })
    }

    fn rewards(&self, predicate: impl Fn(i64, &str) -> bool, first: usize) -> Value {
        let rows = self.rewards.iter().rev().filter(|((epoch, market, _), _)| predicate(*epoch, market));
        let rows = rows.map(|((epoch, market, kind), amount)| {
            let key = vec![epoch.to_string(), market.clone(), ASSET.to_owned(), (*kind).to_owned()];
            let node = json!({
                "epoch": epoch.to_string(), "assetId": ASSET, "marketId": market, "rewardType": kind,
                "amount": amount.to_string(),
            });
            (key, node)
        });
        json!({ "summaries": page("epochReward", rows, first) })
    }

    fn candles(&self, interval: &'static str, market: i64, first: usize) -> Value {
        let rows =
            self.candles.get(&(interval, market)).into_iter().flatten().rev().map(|(start, candle)| {
                let text = |number: i64| number.to_string();
                let node = json!({
                    "start": ns(*start), "lastUpdate": ns(candle.last_us), "open": text(candle.open),
                    "high": text(candle.high), "low": text(candle.low), "close": text(candle.close),
                    "volume": text(candle.volume),
                });
                (vec![ns(*start)], node)
            });
        json!({ "candles": page("candle", rows, first) })
    }

    fn proposals(&self, predicate: impl Fn(&str) -> bool) -> Value {
        let rows = self.proposals.iter().rev().filter(|(_, latest)| predicate(latest.value.1));
        let rows = rows.map(|(height, latest)| {
            let (approvers, status) = &latest.value;
            let node = json!({
                "upgradeBlockHeight": height.to_string(), "networkReleaseTag": "v1", "approvers": approvers,
                "status": status,
            });
            (vec![height.to_string(), "v1".to_owned()], node)
        });
        json!({ "protocolUpgradeProposals": page("pup", rows, 1000) })
    }

    fn limits(&self) -> Value {
        let Latest { at, value: flags } = &self.limits[&()];
        let [one, two, three, four, five] = bits(*flags);
        json!({ "limits": {
            "canProposeMarket": one, "canProposeAsset": two, "proposeMarketEnabled": three,
            "proposeAssetEnabled": four, "genesisLoaded": five,
            "proposeMarketEnabledFrom": ns(at.0 * MICROS), "proposeAssetEnabledFrom": "0",
        } })
    }
}

impl Candle {
    fn new(time_us: i64, price: i64) -> Self {
        let (first_us, last_us) = (time_us, time_us);
        Self { open: price, close: price, high: price, low: price, volume: 0, first_us, last_us }
    }

    fn add(&mut self, time_us: i64, price: i64, size: i64) {
        if time_us < self.first_us {
            (self.first_us, self.open) = (time_us, price);
        }
        if time_us > self.last_us {
            (self.last_us, self.close) = (time_us, price);
        }
        (self.high, self.low) = (self.high.max(price), self.low.min(price));
        self.volume += size;
    }
}

fn ns(time_us: i64) -> String {
    (time_us * 1000).to_string()
}

/// The first page of rows, which are in display order (contract section 3).
fn page(list: &str, rows: impl Iterator<Item = (Vec<String>, Value)>, first: usize) -> Value {
    let mut rows: Vec<_> = rows.take(first + 1).collect();
    let has_next = rows.len() > first;
    rows.truncate(first);
    let edges: Vec<Value> = rows
        .into_iter()
        .map(|(key, node)| {
            let position = format!(r#"{{"o":"{list}","k":{}}}"#, json!(key));
            json!({ "cursor": URL_SAFE_NO_PAD.encode(position), "node": node })
        })
        .collect();
    let cursor = |edge: Option<&Value>| edge.map_or(json!(""), |edge| edge["cursor"].clone());
    let (start, end) = (cursor(edges.first()), cursor(edges.last()));
    let info = json!({
        "startCursor": start, "endCursor": end, "hasNextPage": has_next, "hasPreviousPage": false,
    });
    json!({ "edges": edges, "pageInfo": info })
}

/// A request that clients send, and its expected answer.
pub(super) struct Question {
    /// Path and query.
    pub(super) path: String,
    /// Computes the expected answer.
    pub(super) answer: Box<dyn Fn(&StoreModel) -> Value + Send + Sync>,
}

/// All requests that clients send.
pub(super) fn questions() -> Vec<Question> {
    fn ask(
        path: impl Into<String>,
        answer: impl Fn(&StoreModel) -> Value + Send + Sync + 'static,
    ) -> Question {
        Question { path: path.into(), answer: Box::new(answer) }
    }
    let mut questions = vec![
        ask("/accounts", |model| model.accounts(|_, _| true)),
        ask("/accounts?party=network", |model| model.accounts(|party, _| party == "network")),
        ask("/api/v2/delegations?pagination.first=5", |model| model.delegations(|_, _| true, 5)),
        ask("/api/v2/delegations?epochId=2", |model| model.delegations(|epoch, _| epoch == 2, 1000)),
        ask("/api/v2/rewards/epoch/summaries", |model| model.rewards(|_, _| true, 1000)),
        ask("/api/v2/rewards/epoch/summaries?pagination.first=3", |model| model.rewards(|_, _| true, 3)),
        ask(format!("/api/v2/rewards/epoch/summaries?filter.toEpoch=2&filter.assetIds={ASSET}"), |model| {
            model.rewards(|epoch, _| epoch <= 2, 1000)
        }),
        ask("/api/v2/upgrade/proposals", |model| model.proposals(|_| true)),
        ask("/api/v2/upgrade/proposals?status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED", |model| {
            model.proposals(|status| status.ends_with("APPROVED"))
        }),
        ask("/api/v2/network/limits", StoreModel::limits),
    ];
    for number in 1..3 {
        let (market, party) = (id('a', number), party(number));
        questions.extend([
            ask(format!("/accounts?party={party}"), {
                let party = party.clone();
                move |model| model.accounts(|owner, _| owner == party)
            }),
            ask(format!("/accounts?market={market}"), {
                let market = market.clone();
                move |model| model.accounts(|_, row_market| row_market == market)
            }),
            ask(format!("/api/v2/delegations?partyId={party}"), {
                move |model| model.delegations(|_, owner| owner == party, 1000)
            }),
            ask(format!("/api/v2/withdrawal/{}", id('d', number)), move |model| model.withdrawal(number)),
            ask(format!("/api/v2/oracle/spec/{}", id('e', number)), move |model| model.oracle_spec(number)),
            ask(format!("/api/v2/candle?candleId=trades_candle_1_hour_{market}"), move |model| {
                model.candles("1_hour", number, 1000)
            }),
            ask(format!("/api/v2/candle?candleId=trades_candle_block_{market}&pagination.first=5"), {
                move |model| model.candles("block", number, 5)
            }),
            ask(format!("/api/v2/rewards/epoch/summaries?filter.marketIds={market}"), {
                move |model| model.rewards(|_, row_market| row_market == market, 1000)
            }),
        ]);
    }
    questions
}
