//! Constant data of the demo network: assets, markets, parameters, texts that are hard to parse.

/// An asset; amounts are whole numbers of its smallest unit.
pub(crate) struct Asset {
    pub(crate) symbol: &'static str,
    pub(crate) decimals: u32,
}

/// The assets. Markets settle in the first three; the last is for staking and its id is no hash.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { symbol: "tUSD", decimals: 6 },
    Asset { symbol: "tEUR", decimals: 18 },
    Asset { symbol: "tGBP", decimals: 5 },
    Asset { symbol: "VOTE", decimals: 18 },
];

/// Number of the staking asset.
pub(crate) const VOTE: u8 = 3;

/// Converts whole units of an asset into its smallest unit.
pub(crate) fn units(asset: u8, whole: i128) -> i128 {
    whole * 10i128.pow(ASSETS[usize::from(asset)].decimals)
}

/// The template of a market.
pub(crate) struct Template {
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    pub(crate) quote: &'static str,
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
    pub(crate) tags: &'static [&'static str],
}

/// The market templates, most active first; a network with more markets repeats them.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        code: "BTC/USD-MAR",
        name: "Bitcoin March future",
        quote: "USD",
        asset: 0,
        decimals: 1,
        position_decimals: 4,
        price: 652_000,
        daily_volatility: 310.0,
        size: 800,
        activity: 670,
        tags: &["base:BTC", "quote:USD", "class:fx/crypto", "sector:defi"],
    },
    Template {
        code: "ETH/USD-MAR",
        name: "Ether March future",
        quote: "USD",
        asset: 0,
        decimals: 2,
        position_decimals: 3,
        price: 341_550,
        daily_volatility: 380.0,
        size: 1_500,
        activity: 520,
        tags: &["base:ETH", "quote:USD", "class:fx/crypto"],
    },
    Template {
        code: "SOL/EUR-MAR",
        name: "Solana March future",
        quote: "EUR",
        asset: 1,
        decimals: 3,
        position_decimals: 2,
        price: 145_250,
        daily_volatility: 520.0,
        size: 3_000,
        activity: 330,
        tags: &["base:SOL", "quote:EUR", "class:fx/crypto"],
    },
    Template {
        code: "XAU/EUR-JUN",
        name: "Gold June future (one troy ounce)",
        quote: "EUR",
        asset: 1,
        decimals: 2,
        position_decimals: 3,
        price: 218_735,
        daily_volatility: 95.0,
        size: 1_200,
        activity: 260,
        tags: &["base:XAU", "quote:EUR", "class:commodities"],
    },
    Template {
        code: "CO2/GBP-DEC",
        name: "CO₂ allowances December",
        quote: "GBP",
        asset: 2,
        decimals: 2,
        position_decimals: 1,
        price: 6_874,
        daily_volatility: 210.0,
        size: 500,
        activity: 220,
        tags: &["base:CO2", "quote:GBP", "class:commodities"],
    },
    Template {
        code: "TEA/GBP-DAILY",
        name: "Crème \"Earl Grey\", first flush, cash-settled",
        quote: "GBP",
        asset: 2,
        decimals: 3,
        position_decimals: 0,
        price: 21_480,
        daily_volatility: 260.0,
        size: 60,
        activity: 220,
        tags: &["base:TEA", "quote:GBP", "class:commodities"],
    },
];

/// Texts that are hard to parse in CSV or JSON: quotes, line breaks, separators, Unicode.
pub(crate) const ODD_TEXTS: &[&str] = &[
    "",
    "NULL",
    "\\N",
    "\\.",
    "a, b and c",
    "she said \"sell\"",
    "\"",
    "line one\nline two",
    "carriage\r\nreturn",
    "\r",
    " padded ",
    "naïve café",
    "日本語の注文",
    "order 🚀, \"quoted\"\nand broken",
    "tab\there",
    "'); --",
    "=1+1",
    "{\"a\": 1}",
    "\\\\server\\share",
];

/// Parameters of the network at its first block.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    ("governance.proposal.asset.minClose", "5s"),
    ("governance.proposal.asset.requiredMajority", "0.66"),
    ("governance.proposal.freeform.maxClose", "8760h0m0s"),
    ("governance.proposal.market.maxEnact", "8760h0m0s"),
    ("governance.proposal.market.requiredParticipation", "0.00000015"),
    ("governance.proposal.updateNetParam.minVoterBalance", "1000000000000000000"),
    ("limits.markets.maxPeggedOrders", "1500"),
    ("market.auction.maximumDuration", "168h0m0s"),
    ("market.auction.minimumDuration", "30m0s"),
    ("market.fee.factors.infrastructureFee", "0.0005"),
    ("market.fee.factors.makerFee", "0.0002"),
    ("market.liquidity.bondPenaltyParameter", "0.1"),
    ("market.liquidity.maximumLiquidityFeeFactorLevel", "1"),
    ("market.liquidity.stakeToCcyVolume", "0.2"),
    ("market.liquidityProvision.shapes.maxSize", "10"),
    (
        "market.margin.scalingFactors",
        "{\"search_level\": 1.1, \"initial_margin\": 1.2, \"collateral_release\": 1.4}",
    ),
    (
        "market.monitor.price.defaultParameters",
        "{\"triggers\": [{\"horizon\": \"43200\", \"probability\": \"0.9999999\", \"auction_extension\": \"600\"}]}",
    ),
    ("market.stake.target.scalingFactor", "5"),
    ("market.stake.target.timeWindow", "1h0m0s"),
    ("market.value.windowLength", "168h0m0s"),
    ("network.checkpoint.timeElapsedBetweenCheckpoints", "15m0s"),
    ("network.markPriceUpdateMaximumFrequency", "5s"),
    ("network.notice", ""),
    ("network.validators.tendermint.number", "13"),
    ("reward.asset", "VOTE"),
    ("reward.staking.delegation.delegatorShare", "0.883"),
    ("reward.staking.delegation.maxPayoutPerEpoch", "7000000000000000000000"),
    ("reward.staking.delegation.payoutFraction", "1.0"),
    ("snapshot.interval.length", "1000"),
    ("spam.pow.difficulty", "15"),
    ("spam.pow.hashFunction", "sha3_24_rounds"),
    ("spam.pow.increaseDifficulty", "0"),
    ("spam.pow.numberOfPastBlocks", "100"),
    ("spam.pow.numberOfTxPerBlock", "2"),
    ("spam.protection.max.votes", "3"),
    ("spam.protection.maxUserTransfersPerEpoch", "20"),
    ("transfer.fee.factor", "0.001"),
    ("validators.delegation.minAmount", "100000000000000000"),
    ("validators.epoch.length", "34m0s"),
    ("validators.vote.required", "0.67"),
];

/// Changes of parameters: thousandths of the history, key, new value.
pub(crate) const PARAMETER_CHANGES: &[(u64, &str, &str)] = &[
    (80, "market.fee.factors.makerFee", "0.00025"),
    (150, "network.notice", "maintenance at 12:00, \"please\" close positions\r\n– thank you, Zoë"),
    (240, "spam.pow.numberOfTxPerBlock", "3"),
    (310, "validators.vote.required", "0.7"),
    (420, "spam.pow.numberOfPastBlocks", "120"),
    (480, "network.notice", "\\N"),
    (560, "spam.pow.numberOfTxPerBlock", "2"),
    (610, "market.stake.target.timeWindow", "2h0m0s"),
    (700, "network.notice", "NULL"),
    (730, "spam.pow.difficulty", "16"),
    (790, "spam.pow.difficulty", "15"),
    (840, "spam.pow.numberOfPastBlocks", "100"),
    (880, "transfer.fee.factor", "0.0005"),
    (930, "network.notice", ""),
];
