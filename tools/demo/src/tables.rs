//! The tables that the demo network fills, with their columns in the order of the data model. Tables that the
//! database derives from these by itself are not here: nobody writes them.

/// A table that the demo network writes, in the order of writing: `blocks` comes last, so that a block shows
/// when all its rows are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Table {
    Chain,
    NetworkParameters,
    NetworkLimits,
    Epochs,
    Accounts,
    OracleSpecs,
    ProtocolUpgradeProposals,
    Markets,
    Deposits,
    Withdrawals,
    Ledger,
    Balances,
    Orders,
    Trades,
    Positions,
    MarginLevels,
    LiquidityProvisions,
    MarketData,
    Delegations,
    Rewards,
    Checkpoints,
    Blocks,
}

impl Table {
    /// Number of tables.
    pub const COUNT: usize = 22;

    /// Every table in the order of writing.
    pub const ALL: [Table; Table::COUNT] = [
        Table::Chain,
        Table::NetworkParameters,
        Table::NetworkLimits,
        Table::Epochs,
        Table::Accounts,
        Table::OracleSpecs,
        Table::ProtocolUpgradeProposals,
        Table::Markets,
        Table::Deposits,
        Table::Withdrawals,
        Table::Ledger,
        Table::Balances,
        Table::Orders,
        Table::Trades,
        Table::Positions,
        Table::MarginLevels,
        Table::LiquidityProvisions,
        Table::MarketData,
        Table::Delegations,
        Table::Rewards,
        Table::Checkpoints,
        Table::Blocks,
    ];

    /// Name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.shape().0
    }

    /// Names of the columns, in order.
    pub fn columns(self) -> impl Iterator<Item = &'static str> {
        self.shape().1.split_ascii_whitespace()
    }

    fn shape(self) -> (&'static str, &'static str) {
        match self {
            Table::Chain => ("chain", "id onerow_check"),
            Table::NetworkParameters => ("network_parameters", "key value tx_hash block_time"),
            Table::NetworkLimits => (
                "network_limits",
                "block_time tx_hash can_propose_market can_propose_asset propose_market_enabled \
                 propose_asset_enabled genesis_loaded propose_market_enabled_from propose_asset_enabled_from",
            ),
            Table::Epochs => ("epochs", "id start_time expire_time end_time tx_hash block_time"),
            Table::Accounts => ("accounts", "id party_id asset_id market_id type tx_hash block_time"),
            Table::OracleSpecs => (
                "oracle_specs",
                "id created_at updated_at signers filters status tx_hash block_time internal_conditions",
            ),
            Table::ProtocolUpgradeProposals => (
                "protocol_upgrade_proposals",
                "upgrade_block_height network_release_tag approvers status tx_hash block_time",
            ),
            Table::Markets => (
                "markets",
                "id tx_hash block_time instrument_id tradable_instrument decimal_places fees opening_auction \
                 price_monitoring_settings liquidity_monitoring_parameters trading_mode state market_timestamps \
                 position_decimal_places lp_price_range quadratic_slippage_factor linear_slippage_factor",
            ),
            Table::Deposits => (
                "deposits",
                "id status party_id asset amount foreign_tx_hash credited_timestamp created_timestamp tx_hash \
                 block_time",
            ),
            Table::Withdrawals => (
                "withdrawals",
                "id party_id amount asset status ref foreign_tx_hash created_timestamp withdrawn_timestamp ext \
                 tx_hash block_time",
            ),
            Table::Ledger => (
                "ledger",
                "ledger_entry_time account_from_id account_to_id quantity tx_hash block_time transfer_time \
                 account_from_balance account_to_balance type",
            ),
            Table::Balances => ("balances", "account_id block_time tx_hash balance"),
            Table::Orders => (
                "orders",
                "id market_id party_id side price size remaining time_in_force type status reference reason \
                 version batch_id pegged_offset pegged_reference lp_id created_at updated_at expires_at tx_hash \
                 block_time seq_num post_only reduce_only",
            ),
            Table::Trades => (
                "trades",
                "synthetic_time tx_hash block_time seq_num id market_id price size buyer seller aggressor \
                 buy_order sell_order type buyer_maker_fee buyer_infrastructure_fee buyer_liquidity_fee \
                 seller_maker_fee seller_infrastructure_fee seller_liquidity_fee buyer_auction_batch \
                 seller_auction_batch",
            ),
            Table::Positions => (
                "positions",
                "market_id party_id open_volume realised_pnl unrealised_pnl average_entry_price \
                 average_entry_market_price loss adjustment tx_hash block_time pending_open_volume \
                 pending_realised_pnl pending_unrealised_pnl pending_average_entry_price \
                 pending_average_entry_market_price loss_socialisation_amount distressed_status",
            ),
            Table::MarginLevels => (
                "margin_levels",
                "account_id timestamp maintenance_margin search_level initial_margin collateral_release_level \
                 tx_hash block_time",
            ),
            Table::LiquidityProvisions => (
                "liquidity_provisions",
                "id party_id created_at updated_at market_id commitment_amount fee sells buys version status \
                 reference tx_hash block_time",
            ),
            Table::MarketData => (
                "market_data",
                "synthetic_time tx_hash block_time seq_num market mark_price best_bid_price best_bid_volume \
                 best_offer_price best_offer_volume best_static_bid_price best_static_bid_volume \
                 best_static_offer_price best_static_offer_volume mid_price static_mid_price open_interest \
                 auction_end auction_start indicative_price indicative_volume market_trading_mode \
                 auction_trigger extension_trigger target_stake supplied_stake price_monitoring_bounds \
                 market_value_proxy liquidity_provider_fee_shares market_state next_mark_to_market",
            ),
            Table::Delegations => {
                ("delegations", "party_id node_id epoch_id amount tx_hash block_time seq_num")
            }
            Table::Rewards => (
                "rewards",
                "party_id asset_id market_id reward_type epoch_id amount percent_of_total timestamp tx_hash \
                 block_time seq_num",
            ),
            Table::Checkpoints => ("checkpoints", "hash block_hash block_height tx_hash block_time seq_num"),
            Table::Blocks => ("blocks", "block_time height hash"),
        }
    }
}
