//! The schema of the contract as data: tables, keys, indexes, enum labels, defaults.

/// The contract's tables: name, then columns in order as `name:type`, `!` for NOT NULL. Types are the
/// contract's own short names; `ctext` is a text that sorts by bytes.
pub(super) const TABLES: &str = "
balances
    account_id:id! block_time:ts! tx_hash:id! balance:big!
blocks
    block_time:ts! height:int8! hash:id!
checkpoints
    hash:text! block_hash:text! block_height:int8! tx_hash:id! block_time:ts! seq_num:int8!
delegations
    party_id:id! node_id:id! epoch_id:int8! amount:big tx_hash:id! block_time:ts! seq_num:int8!
deposits
    id:id! status:deposit_status! party_id:id! asset:id! amount:big foreign_tx_hash:text!
    credited_timestamp:ts! created_timestamp:ts! tx_hash:id! block_time:ts!
ledger
    ledger_entry_time:ts! account_from_id:id! account_to_id:id! quantity:big! tx_hash:id! block_time:ts!
    transfer_time:ts! account_from_balance:big! account_to_balance:big! type:text
liquidity_provisions
    id:id! party_id:id created_at:ts! updated_at:ts! market_id:id commitment_amount:big fee:num16
    sells:jsonb buys:jsonb version:int8 status:liquidity_provision_status! reference:text tx_hash:id!
    block_time:ts!
margin_levels
    account_id:id! timestamp:ts! maintenance_margin:big search_level:big initial_margin:big
    collateral_release_level:big tx_hash:id! block_time:ts!
market_data
    synthetic_time:ts! tx_hash:id! block_time:ts! seq_num:int8! market:id! mark_price:big
    best_bid_price:big best_bid_volume:big best_offer_price:big best_offer_volume:big
    best_static_bid_price:big best_static_bid_volume:big best_static_offer_price:big
    best_static_offer_volume:big mid_price:big static_mid_price:big open_interest:big auction_end:int8
    auction_start:int8 indicative_price:big indicative_volume:big
    market_trading_mode:market_trading_mode_type auction_trigger:auction_trigger_type
    extension_trigger:auction_trigger_type target_stake:big supplied_stake:big
    price_monitoring_bounds:jsonb market_value_proxy:text liquidity_provider_fee_shares:jsonb
    market_state:market_state_type next_mark_to_market:ts
markets
    id:id! tx_hash:id! block_time:ts! instrument_id:text tradable_instrument:jsonb decimal_places:int4
    fees:jsonb opening_auction:jsonb price_monitoring_settings:jsonb
    liquidity_monitoring_parameters:jsonb trading_mode:market_trading_mode_type state:market_state_type
    market_timestamps:jsonb position_decimal_places:int4 lp_price_range:text
    quadratic_slippage_factor:num linear_slippage_factor:num
orders
    id:id! market_id:id! party_id:id! side:int2! price:big! size:int8! remaining:int8!
    time_in_force:int2! type:int2! status:int2! reference:text reason:int2 version:int4! batch_id:int4!
    pegged_offset:big pegged_reference:int2 lp_id:id created_at:ts! updated_at:ts expires_at:ts
    tx_hash:id! block_time:ts! seq_num:int8! post_only:bool! reduce_only:bool!
positions
    market_id:id! party_id:id! open_volume:int8! realised_pnl:num! unrealised_pnl:num!
    average_entry_price:num! average_entry_market_price:num! loss:num! adjustment:num! tx_hash:id!
    block_time:ts! pending_open_volume:int8! pending_realised_pnl:num! pending_unrealised_pnl:num!
    pending_average_entry_price:num! pending_average_entry_market_price:num!
    loss_socialisation_amount:num! distressed_status:position_status_type!
rewards
    party_id:id! asset_id:id! market_id:id! reward_type:ctext! epoch_id:int8! amount:big
    percent_of_total:float8 timestamp:ts! tx_hash:id! block_time:ts! seq_num:int8!
trades
    synthetic_time:ts! tx_hash:id! block_time:ts! seq_num:int8! id:id! market_id:id! price:big!
    size:int8! buyer:id! seller:id! aggressor:int2 buy_order:id! sell_order:id! type:int2!
    buyer_maker_fee:big buyer_infrastructure_fee:big buyer_liquidity_fee:big seller_maker_fee:big
    seller_infrastructure_fee:big seller_liquidity_fee:big buyer_auction_batch:int8
    seller_auction_batch:int8
withdrawals
    id:id! party_id:id! amount:num asset:id! status:withdrawal_status! ref:text! foreign_tx_hash:text!
    created_timestamp:ts! withdrawn_timestamp:ts! ext:jsonb! tx_hash:id! block_time:ts!
assets
    id:id! name:text! symbol:text! decimals:int4 quantum:num source:text erc20_contract:text
    lifetime_limit:num! withdraw_threshold:num! status:asset_status! tx_hash:id! block_time:ts!
accounts
    id:id! party_id:id asset_id:id! market_id:id type:int4 tx_hash:id! block_time:ts!
current_balances
    account_id:id! tx_hash:id! block_time:ts! balance:big!
delegations_current
    party_id:id! node_id:id! epoch_id:int8! amount:big tx_hash:id! block_time:ts! seq_num:int8!
oracle_specs
    id:id! created_at:ts! updated_at:ts! signers:jsonb filters:jsonb status:oracle_spec_status!
    tx_hash:id! block_time:ts! internal_conditions:jsonb
protocol_upgrade_proposals
    upgrade_block_height:int8! network_release_tag:ctext! approvers:text[]!
    status:protocol_upgrade_proposal_status! tx_hash:id! block_time:ts!
protocol_upgrade_proposals_current
    upgrade_block_height:int8! network_release_tag:ctext! approvers:text[]!
    status:protocol_upgrade_proposal_status! tx_hash:id! block_time:ts!
network_limits
    block_time:ts! tx_hash:id! can_propose_market:bool! can_propose_asset:bool!
    propose_market_enabled:bool! propose_asset_enabled:bool! genesis_loaded:bool!
    propose_market_enabled_from:ts! propose_asset_enabled_from:ts!
network_parameters
    key:ctext! value:text! tx_hash:id! block_time:ts!
network_parameters_current
    key:ctext! value:text! tx_hash:id! block_time:ts!
last_block
    onerow_check:bool! block_time:ts! height:int8! hash:id!
chain
    id:id! onerow_check:bool!
epochs
    id:int8! start_time:ts! expire_time:ts! end_time:ts tx_hash:id! block_time:ts!
last_snapshot_span
    onerow_check:bool! from_height:int8! to_height:int8!
node_state
    onerow_check:bool! upgrade_ready:bool! upgrade_height:int8 updated_at:ts!
";

/// Primary keys and indexes by table.
pub(super) const KEYS: &str = "
balances
    primary key (block_time, account_id)
    index (account_id, block_time)
blocks
    primary key (block_time)
    unique (height)
checkpoints
    primary key (block_time, seq_num)
delegations
    primary key (block_time, seq_num)
    index (party_id, node_id, epoch_id)
    index (party_id, node_id, epoch_id, block_time, seq_num)
deposits
    primary key (id, party_id, block_time)
    index (party_id)
    index (block_time)
    index (created_timestamp, id)
    index (party_id, created_timestamp, id)
    index (asset, created_timestamp, id)
ledger
    primary key (ledger_entry_time)
    index (account_from_id, block_time, ledger_entry_time)
    index (account_to_id, block_time, ledger_entry_time)
    index (block_time)
liquidity_provisions
    primary key (id, block_time)
    index (block_time)
margin_levels
    primary key (block_time, account_id)
market_data
    primary key (synthetic_time)
    index (market, block_time)
    index (block_time)
markets
    primary key (id, block_time)
    index (block_time)
orders
    primary key (block_time, seq_num)
    index (id, block_time, seq_num)
positions
    primary key (block_time, party_id, market_id)
    index (party_id, market_id, block_time)
rewards
    primary key (block_time, seq_num)
    index (epoch_id, market_id, asset_id, reward_type)
    index (asset_id)
    index (asset_id, epoch_id, market_id, reward_type)
    index (market_id, epoch_id, asset_id, reward_type)
trades
    primary key (synthetic_time)
    index (market_id, synthetic_time)
    index (buyer, synthetic_time)
    index (seller, synthetic_time)
    index (buyer, market_id, synthetic_time)
    index (seller, market_id, synthetic_time)
    index (block_time)
withdrawals
    primary key (id, party_id, block_time)
    index (party_id)
    index (block_time)
    index (created_timestamp, id)
    index (party_id, created_timestamp, id)
    index (asset, created_timestamp, id)
assets
    primary key (id, block_time)
accounts
    primary key (id)
    unique (party_id, asset_id, market_id, type)
    index (market_id)
    index (expression, expression, asset_id, expression)
    index (expression, expression, asset_id, expression)
current_balances
    primary key (account_id)
delegations_current
    primary key (party_id, node_id, epoch_id)
    index (epoch_id, party_id, node_id)
    index (party_id, epoch_id, node_id)
    index (node_id, epoch_id, party_id)
oracle_specs
    primary key (id, block_time)
protocol_upgrade_proposals
    primary key (block_time, upgrade_block_height, network_release_tag)
    index (upgrade_block_height, network_release_tag, block_time)
protocol_upgrade_proposals_current
    primary key (upgrade_block_height, network_release_tag)
    gin (approvers)
network_limits
    primary key (block_time)
network_parameters
    primary key (key, block_time)
network_parameters_current
    primary key (key)
last_block
    primary key (onerow_check)
chain
    primary key (onerow_check)
epochs
    primary key (id, block_time)
last_snapshot_span
    primary key (onerow_check)
node_state
    primary key (onerow_check)
";

/// Enum types and their labels in order.
pub(super) const ENUMS: &str = "
deposit_status
    STATUS_UNSPECIFIED STATUS_OPEN STATUS_CANCELLED STATUS_FINALIZED
withdrawal_status
    STATUS_UNSPECIFIED STATUS_OPEN STATUS_REJECTED STATUS_FINALIZED
oracle_spec_status
    STATUS_UNSPECIFIED STATUS_ACTIVE STATUS_DEACTIVATED
protocol_upgrade_proposal_status
    PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING
    PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED
liquidity_provision_status
    STATUS_UNSPECIFIED STATUS_ACTIVE STATUS_STOPPED STATUS_CANCELLED STATUS_REJECTED STATUS_UNDEPLOYED
    STATUS_PENDING
position_status_type
    POSITION_STATUS_UNSPECIFIED POSITION_STATUS_ORDERS_CLOSED POSITION_STATUS_CLOSED_OUT
    POSITION_STATUS_DISTRESSED
market_state_type
    STATE_UNSPECIFIED STATE_PROPOSED STATE_REJECTED STATE_PENDING STATE_CANCELLED STATE_ACTIVE
    STATE_SUSPENDED STATE_CLOSED STATE_TRADING_TERMINATED STATE_SETTLED
market_trading_mode_type
    TRADING_MODE_UNSPECIFIED TRADING_MODE_CONTINUOUS TRADING_MODE_BATCH_AUCTION
    TRADING_MODE_OPENING_AUCTION TRADING_MODE_MONITORING_AUCTION TRADING_MODE_NO_TRADING
asset_status
    STATUS_UNSPECIFIED STATUS_PROPOSED STATUS_REJECTED STATUS_PENDING_LISTING STATUS_ENABLED
auction_trigger_type
    AUCTION_TRIGGER_UNSPECIFIED AUCTION_TRIGGER_BATCH AUCTION_TRIGGER_OPENING AUCTION_TRIGGER_PRICE
    AUCTION_TRIGGER_LIQUIDITY AUCTION_TRIGGER_LIQUIDITY_TARGET_NOT_MET
    AUCTION_TRIGGER_UNABLE_TO_DEPLOY_LP_ORDERS
";

/// Columns with a default. Everything else has none.
pub(super) const DEFAULTS: [&str; 6] = [
    "chain.onerow_check true",
    "last_block.onerow_check true",
    "last_snapshot_span.onerow_check true",
    "node_state.onerow_check true",
    "orders.post_only false",
    "orders.reduce_only false",
];

/// Tables that are not in the contract: that of the migration library, and what lists are read from.
pub(super) const OURS: [&str; 10] = [
    "refinery_schema_history",
    "trades_candle",
    "assets_current",
    "deposits_current",
    "first_rows_of_epochs",
    "markets_current",
    "orders_current",
    "orders_rested",
    "positions_current",
    "withdrawals_current",
];
