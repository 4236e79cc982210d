//! Constant data of the demo network: its assets, and what `catalogue.json` lists.

use std::{collections::BTreeMap, sync::LazyLock};

use mesh_store::TimeUs;
use serde::Deserialize;
use serde_json::Value;

use crate::order::OrderTemplate;

/// The first moment of 1970, which stands for "not set" where a column may not be NULL.
pub(crate) const UNSET: TimeUs = TimeUs(0);

/// An asset; amounts are whole numbers of its smallest unit.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) symbol: &'static str,
    pub(crate) decimals: u32,
}

/// The assets. Markets settle in the first three; the last is for staking and its id is no hash.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { name: "Test US dollar", symbol: "tUSD", decimals: 6 },
    Asset { name: "Test euro", symbol: "tEUR", decimals: 18 },
    Asset { name: "Test pound sterling", symbol: "tGBP", decimals: 5 },
    Asset { name: "Votes", symbol: "VOTE", decimals: 18 },
];

/// Number of the staking asset in [`ASSETS`].
pub(crate) const VOTE: u8 = 3;

/// Converts whole units of an asset into its smallest unit.
pub(crate) fn units(asset: u8, whole: i128) -> i128 {
    whole * 10i128.pow(ASSETS[usize::from(asset)].decimals)
}

/// The template of a market.
#[derive(Debug, Deserialize)]
pub(crate) struct Template {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) quote: String,
    pub(crate) asset: u8,
    pub(crate) decimals: u32,
    pub(crate) position_decimals: u32,
    /// First price in the market's smallest unit.
    pub(crate) price: i64,
    /// Deviation of the price over a day in hundredths of a percent.
    pub(crate) daily_volatility: f64,
    /// Usual size of an order.
    pub(crate) size: i64,
    /// Orders that take liquidity per block, in thousandths.
    pub(crate) activity: u64,
    pub(crate) tags: Vec<String>,
}

/// A proposal to run a new release. In the catalogue, places in the history are in thousandths; otherwise
/// heights.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Upgrade {
    pub(crate) tag: String,
    /// The first vote.
    pub(crate) from: u64,
    /// The upgrade block.
    pub(crate) at: u64,
    /// Number of approvers after each vote; the last one stays.
    pub(crate) approvers: Vec<u64>,
    /// Whether the approvers are enough at the upgrade block.
    #[serde(default)]
    pub(crate) approved: bool,
}

/// The content of an oracle specification: external (signers and filters) or the network's own clock.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct OracleForm {
    pub(crate) signers: Option<Value>,
    pub(crate) filters: Option<Value>,
    pub(crate) internal: Option<Value>,
}

/// The lists of `catalogue.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Catalogue {
    /// Most active first; a network with more markets repeats them.
    pub(crate) markets: Vec<Template>,
    /// Parts of the definition that all markets share.
    pub(crate) definition: BTreeMap<String, Value>,
    /// Texts that are hard to parse in CSV or JSON: quotes, line breaks, separators, Unicode.
    pub(crate) odd_texts: Vec<String>,
    /// Parameters of the network at its first block.
    pub(crate) parameters: BTreeMap<String, String>,
    /// Changes of parameters: thousandths of the history, key, new value.
    pub(crate) parameter_changes: Vec<(u64, String, String)>,
    /// Network limits: from a thousandth of the history on, whether markets and assets may be proposed,
    /// whether each kind is enabled, and whether genesis is loaded.
    pub(crate) limits: Vec<(u64, [bool; 5])>,
    /// Upgrades of the history.
    pub(crate) upgrades: Vec<Upgrade>,
    /// Orders that parties send in continuous trading, and in auctions.
    pub(crate) continuous: Vec<OrderTemplate>,
    pub(crate) auction: Vec<OrderTemplate>,
    /// Forms of specifications that no market of the demo network needs, but clients must parse.
    pub(crate) oracles: Vec<OracleForm>,
}

pub(crate) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    serde_json::from_str(include_str!("catalogue.json")).expect("the file has the lists of the type")
});

impl Catalogue {
    pub(crate) fn template(&self, market: u16) -> &Template {
        &self.markets[usize::from(market) % self.markets.len()]
    }
}
