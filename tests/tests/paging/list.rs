//! The paged lists: their paths, the sort keys of their rows, and the SQL that inserts and deletes a
//! row.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A market that only numbered rows have.
pub(crate) const MARKET: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
pub(crate) const PARTY: &str = "00000000000000000000000000000000000000000000000000000000000000bb";
const NODE: &str = "00000000000000000000000000000000000000000000000000000000000000cc";

/// Distance of numbered candles, and start of the first one since the Unix epoch, seconds.
const MINUTE_S: i64 = 60;
const FIRST_CANDLE_S: i64 = 1_687_255_200;
/// Start of the listed trades; those before it are of candles.
pub(crate) const FIRST_TRADE_S: i64 = 1_700_000_000;
/// A market that only numbered trades have.
pub(crate) const TRADED: &str = "00000000000000000000000000000000000000000000000000000000000000dd";

/// One of the lists that answer in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Proposals,
    Candles,
    Summaries,
    Delegations,
    Markets,
    Assets,
    Trades,
    Positions,
}

pub(crate) const LISTS: [List; 8] = [
    List::Proposals,
    List::Candles,
    List::Summaries,
    List::Delegations,
    List::Markets,
    List::Assets,
    List::Trades,
    List::Positions,
];

/// A value of a sort key. Texts are compared by bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(i64),
    Text(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

pub(crate) type Key = Vec<Part>;

/// A row: its sort key and its expected JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) node: Value,
}

pub(crate) fn number(number: i64) -> Part {
    Part::Number(number)
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

/// The cursor of a position, encoded by the text of P8.
pub(crate) fn cursor(list: List, key: &[Part]) -> String {
    let values: Vec<String> = key.iter().map(ToString::to_string).collect();
    cursor_of_json(&format!(r#"{{"o":"{}","k":{}}}"#, list.name(), json!(values)))
}

/// The cursor of any JSON text.
pub(crate) fn cursor_of_json(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

impl List {
    /// The list's path and the query up to its filters.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Proposals => "/api/v2/upgrade/proposals?".to_owned(),
            Self::Candles => format!("/api/v2/candle?candleId=trades_candle_1_minute_{MARKET}"),
            Self::Summaries => "/api/v2/rewards/epoch/summaries?".to_owned(),
            Self::Delegations => "/api/v2/delegations?".to_owned(),
            Self::Markets => "/api/v2/markets?".to_owned(),
            Self::Assets => "/api/v2/assets?".to_owned(),
            Self::Trades => format!("/api/v2/trades?dateRange.startTimestamp={FIRST_TRADE_S}000000000"),
            Self::Positions => "/api/v2/positions?".to_owned(),
        }
    }

    /// The member of the answer that contains the page.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Proposals => "protocolUpgradeProposals",
            Self::Candles => "candles",
            Self::Summaries => "summaries",
            Self::Delegations => "delegations",
            Self::Markets => "markets",
            Self::Assets => "assets",
            Self::Trades => "trades",
            Self::Positions => "positions",
        }
    }

    /// The list's name inside cursors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Proposals => "pup",
            Self::Candles => "candle",
            Self::Summaries => "epochReward",
            Self::Delegations => "delegation",
            Self::Markets => "market",
            Self::Assets => "asset",
            Self::Trades => "trade",
            Self::Positions => "position",
        }
    }

    /// The sort key of a numbered row: a higher number is newer.
    pub(crate) fn key(self, n: i64) -> Key {
        match self {
            Self::Proposals => vec![number(n), text("v1")],
            Self::Candles => vec![number((FIRST_CANDLE_S + n * MINUTE_S) * 1_000_000_000)],
            Self::Summaries => {
                vec![number(n), text(MARKET), text("VOTE"), text("ACCOUNT_TYPE_GLOBAL_REWARD")]
            }
            Self::Delegations => vec![number(n), text(PARTY), text(NODE)],
            Self::Markets | Self::Assets => vec![text(&numbered_id(n))],
            Self::Trades => vec![number((FIRST_TRADE_S + n * MINUTE_S) * 1_000_000_000)],
            Self::Positions => vec![text(&numbered_id(n)), text(MARKET)],
        }
    }

    /// A numbered row, as [`List::insert`] writes it.
    pub(crate) fn row(self, n: i64) -> Row {
        let key = self.key(n);
        let node = match self {
            Self::Proposals => json!({
                "upgradeBlockHeight": n.to_string(), "networkReleaseTag": "v1", "approvers": ["ab"],
                "status": "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING",
            }),
            Self::Candles => {
                let start = key[0].to_string();
                json!({
                    "start": start, "lastUpdate": start, "open": "5", "high": "5", "low": "5", "close": "5",
                    "volume": "7",
                })
            }
            Self::Summaries => json!({
                "epoch": n.to_string(), "assetId": "VOTE", "marketId": MARKET,
                "rewardType": "ACCOUNT_TYPE_GLOBAL_REWARD", "amount": "3",
            }),
            Self::Delegations => {
                json!({ "party": PARTY, "nodeId": NODE, "amount": "9", "epochSeq": n.to_string() })
            }
            Self::Markets => json!({
                "id": key[0].to_string(), "code": "", "name": "", "quoteName": "", "settlementAsset": "",
                "decimalPlaces": 1, "positionDecimalPlaces": 2, "tradingMode": "TRADING_MODE_UNSPECIFIED",
                "state": "STATE_ACTIVE", "markPrice": "", "bestBidPrice": "", "bestOfferPrice": "",
                "openInterest": "",
            }),
            Self::Assets => json!({
                "id": key[0].to_string(), "name": "name", "symbol": "symbol", "decimals": 3, "quantum": "4",
                "status": "STATUS_ENABLED", "erc20Contract": "",
            }),
            Self::Trades => json!({
                "id": "trade", "marketId": TRADED, "price": "5", "size": "7", "buyer": "b", "seller": "s",
                "aggressor": "SIDE_BUY", "buyOrder": "bo", "sellOrder": "so", "type": "TYPE_DEFAULT",
                "timestamp": key[0].to_string(),
            }),
            Self::Positions => json!({
                "marketId": MARKET, "partyId": key[0].to_string(), "openVolume": "6", "realisedPnl": "7",
                "unrealisedPnl": "-9", "averageEntryPrice": "10", "updatedAt": "1687255200000000000",
                "lossSocialisationAmount": "11", "status": "POSITION_STATUS_DISTRESSED",
                "settled": {
                    "openVolume": "1", "realisedPnl": "2", "unrealisedPnl": "3.5", "averageEntryPrice": "4",
                },
            }),
        };
        Row { key, node }
    }

    /// SQL that inserts numbered rows.
    pub(crate) fn insert(self, numbers: &[i64]) -> String {
        let values = |row: &dyn Fn(i64) -> String| {
            numbers.iter().map(|n| format!("({})", row(*n))).collect::<Vec<_>>().join(", ")
        };
        let time = "'2023-06-20 10:00:00+00'";
        match self {
            Self::Proposals => {
                let rows = values(&|n| {
                    format!("{n}, 'v1', '{{ab}}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'tx', {time}")
                });
                format!("INSERT INTO protocol_upgrade_proposals VALUES {rows}")
            }
            Self::Candles | Self::Trades => {
                let market = if self == Self::Trades { TRADED } else { MARKET };
                let rows = values(&|n| {
                    let at = self.traded_at(n);
                    format!("{at}, 'tx', {at}, 0, 'trade', '{market}', 5, 7, 'b', 's', 1, 'bo', 'so', 1")
                });
                format!("INSERT INTO trades VALUES {rows}")
            }
            Self::Summaries => {
                let rows = values(&|n| {
                    let reward =
                        format!("'{PARTY}', 'VOTE', '{MARKET}', 'ACCOUNT_TYPE_GLOBAL_REWARD', {n}, 3, 1");
                    format!("{reward}, {time}, 'tx', {time}, {n}")
                });
                format!("INSERT INTO rewards VALUES {rows}")
            }
            Self::Delegations => {
                let rows = values(&|n| format!("'{PARTY}', '{NODE}', {n}, 9, 'tx', {time}, {n}"));
                format!("INSERT INTO delegations VALUES {rows}")
            }
            Self::Markets => {
                let rows = values(&|n| format!("'{}', 'tx', {time}, 1, 2, 'STATE_ACTIVE'", numbered_id(n)));
                let columns = "id, tx_hash, block_time, decimal_places, position_decimal_places, state";
                format!("INSERT INTO markets ({columns}) VALUES {rows}")
            }
            Self::Assets => {
                let rows = values(&|n| {
                    let id = numbered_id(n);
                    format!("'{id}', 'name', 'symbol', 3, 4, '', '', 0, 0, 'STATUS_ENABLED', 'tx', {time}")
                });
                format!("INSERT INTO assets VALUES {rows}")
            }
            Self::Positions => {
                let rows = values(&|n| {
                    let own =
                        format!("'{MARKET}', '{}', 1, 2, 3.5, 4, 0, 0, 0, 'tx', {time}", numbered_id(n));
                    format!("{own}, 6, 7.49, -8.5, 0, 9.5, 11, 'POSITION_STATUS_DISTRESSED'")
                });
                format!("INSERT INTO positions VALUES {rows}")
            }
        }
    }

    /// The time of a numbered candle's or trade's trade, as SQL.
    fn traded_at(self, n: i64) -> String {
        let first = if self == Self::Trades { FIRST_TRADE_S } else { FIRST_CANDLE_S };
        format!("to_timestamp({})", first + n * MINUTE_S)
    }

    /// SQL that deletes a numbered row.
    pub(crate) fn delete(self, n: i64) -> String {
        match self {
            Self::Proposals => ["protocol_upgrade_proposals", "protocol_upgrade_proposals_current"]
                .map(|table| format!("DELETE FROM {table} WHERE upgrade_block_height = {n};"))
                .concat(),
            Self::Candles | Self::Trades => {
                format!("DELETE FROM trades WHERE synthetic_time = {}", self.traded_at(n))
            }
            Self::Summaries => format!("DELETE FROM rewards WHERE epoch_id = {n}"),
            Self::Delegations => ["delegations", "delegations_current"]
                .map(|table| format!("DELETE FROM {table} WHERE epoch_id = {n};"))
                .concat(),
            Self::Markets => delete_id(["markets", "markets_current"], "id", n),
            Self::Assets => delete_id(["assets", "assets_current"], "id", n),
            Self::Positions => delete_id(["positions", "positions_current"], "party_id", n),
        }
    }
}

/// An id that sorts like its number.
pub(crate) fn numbered_id(n: i64) -> String {
    format!("{:064x}", n + 0x1000)
}

fn delete_id(tables: [&str; 2], column: &str, n: i64) -> String {
    let id = numbered_id(n);
    tables.map(|table| format!("DELETE FROM {table} WHERE {column} = '{id}';")).concat()
}

#[test]
fn the_cursor_is_that_of_the_contracts_worked_example() {
    let cursor = cursor(List::Candles, &[number(1_687_255_200_000_000_000)]);
    assert_eq!(cursor, "eyJvIjoiY2FuZGxlIiwiayI6WyIxNjg3MjU1MjAwMDAwMDAwMDAwIl19");
}
