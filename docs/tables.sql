-- The exportable tables for your own database: plain types, no keys. Generated from the schema; what the
-- columns hold is in tables.md. Load an unpacked file with: \copy trades FROM 'FILE.csv' CSV HEADER

CREATE TABLE balances (
    account_id text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    tx_hash text NOT NULL,
    balance numeric(78,0) NOT NULL
);

CREATE TABLE blocks (
    block_time timestamp with time zone NOT NULL,
    height bigint NOT NULL,
    hash text NOT NULL
);

CREATE TABLE checkpoints (
    hash text NOT NULL,
    block_hash text NOT NULL,
    block_height bigint NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL
);

CREATE TABLE delegations (
    party_id text NOT NULL,
    node_id text NOT NULL,
    epoch_id bigint NOT NULL,
    amount numeric(78,0),
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL
);

CREATE TABLE deposits (
    id text NOT NULL,
    status text NOT NULL,
    party_id text NOT NULL,
    asset text NOT NULL,
    amount numeric(78,0),
    foreign_tx_hash text NOT NULL,
    credited_timestamp timestamp with time zone NOT NULL,
    created_timestamp timestamp with time zone NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL
);

CREATE TABLE ledger (
    ledger_entry_time timestamp with time zone NOT NULL,
    account_from_id text NOT NULL,
    account_to_id text NOT NULL,
    quantity numeric(78,0) NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    transfer_time timestamp with time zone NOT NULL,
    account_from_balance numeric(78,0) NOT NULL,
    account_to_balance numeric(78,0) NOT NULL,
    type text
);

CREATE TABLE liquidity_provisions (
    id text NOT NULL,
    party_id text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    market_id text,
    commitment_amount numeric(78,0),
    fee numeric(94,16),
    sells jsonb,
    buys jsonb,
    version bigint,
    status text NOT NULL,
    reference text,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL
);

CREATE TABLE margin_levels (
    account_id text NOT NULL,
    "timestamp" timestamp with time zone NOT NULL,
    maintenance_margin numeric(78,0),
    search_level numeric(78,0),
    initial_margin numeric(78,0),
    collateral_release_level numeric(78,0),
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL
);

CREATE TABLE market_data (
    synthetic_time timestamp with time zone NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL,
    market text NOT NULL,
    mark_price numeric(78,0),
    best_bid_price numeric(78,0),
    best_bid_volume numeric(78,0),
    best_offer_price numeric(78,0),
    best_offer_volume numeric(78,0),
    best_static_bid_price numeric(78,0),
    best_static_bid_volume numeric(78,0),
    best_static_offer_price numeric(78,0),
    best_static_offer_volume numeric(78,0),
    mid_price numeric(78,0),
    static_mid_price numeric(78,0),
    open_interest numeric(78,0),
    auction_end bigint,
    auction_start bigint,
    indicative_price numeric(78,0),
    indicative_volume numeric(78,0),
    market_trading_mode text,
    auction_trigger text,
    extension_trigger text,
    target_stake numeric(78,0),
    supplied_stake numeric(78,0),
    price_monitoring_bounds jsonb,
    market_value_proxy text,
    liquidity_provider_fee_shares jsonb,
    market_state text,
    next_mark_to_market timestamp with time zone
);

CREATE TABLE markets (
    id text NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    instrument_id text,
    tradable_instrument jsonb,
    decimal_places integer,
    fees jsonb,
    opening_auction jsonb,
    price_monitoring_settings jsonb,
    liquidity_monitoring_parameters jsonb,
    trading_mode text,
    state text,
    market_timestamps jsonb,
    position_decimal_places integer,
    lp_price_range text,
    quadratic_slippage_factor numeric,
    linear_slippage_factor numeric
);

CREATE TABLE orders (
    id text NOT NULL,
    market_id text NOT NULL,
    party_id text NOT NULL,
    side smallint NOT NULL,
    price numeric(78,0) NOT NULL,
    size bigint NOT NULL,
    remaining bigint NOT NULL,
    time_in_force smallint NOT NULL,
    type smallint NOT NULL,
    status smallint NOT NULL,
    reference text,
    reason smallint,
    version integer NOT NULL,
    batch_id integer NOT NULL,
    pegged_offset numeric(78,0),
    pegged_reference smallint,
    lp_id text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone,
    expires_at timestamp with time zone,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL,
    post_only boolean NOT NULL,
    reduce_only boolean NOT NULL
);

CREATE TABLE positions (
    market_id text NOT NULL,
    party_id text NOT NULL,
    open_volume bigint NOT NULL,
    realised_pnl numeric NOT NULL,
    unrealised_pnl numeric NOT NULL,
    average_entry_price numeric NOT NULL,
    average_entry_market_price numeric NOT NULL,
    loss numeric NOT NULL,
    adjustment numeric NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    pending_open_volume bigint NOT NULL,
    pending_realised_pnl numeric NOT NULL,
    pending_unrealised_pnl numeric NOT NULL,
    pending_average_entry_price numeric NOT NULL,
    pending_average_entry_market_price numeric NOT NULL,
    loss_socialisation_amount numeric NOT NULL,
    distressed_status text NOT NULL
);

CREATE TABLE rewards (
    party_id text NOT NULL,
    asset_id text NOT NULL,
    market_id text NOT NULL,
    reward_type text NOT NULL,
    epoch_id bigint NOT NULL,
    amount numeric(78,0),
    percent_of_total double precision,
    "timestamp" timestamp with time zone NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL
);

CREATE TABLE trades (
    synthetic_time timestamp with time zone NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL,
    seq_num bigint NOT NULL,
    id text NOT NULL,
    market_id text NOT NULL,
    price numeric(78,0) NOT NULL,
    size bigint NOT NULL,
    buyer text NOT NULL,
    seller text NOT NULL,
    aggressor smallint,
    buy_order text NOT NULL,
    sell_order text NOT NULL,
    type smallint NOT NULL,
    buyer_maker_fee numeric(78,0),
    buyer_infrastructure_fee numeric(78,0),
    buyer_liquidity_fee numeric(78,0),
    seller_maker_fee numeric(78,0),
    seller_infrastructure_fee numeric(78,0),
    seller_liquidity_fee numeric(78,0),
    buyer_auction_batch bigint,
    seller_auction_batch bigint
);

CREATE TABLE withdrawals (
    id text NOT NULL,
    party_id text NOT NULL,
    amount numeric,
    asset text NOT NULL,
    status text NOT NULL,
    ref text NOT NULL,
    foreign_tx_hash text NOT NULL,
    created_timestamp timestamp with time zone NOT NULL,
    withdrawn_timestamp timestamp with time zone NOT NULL,
    ext jsonb NOT NULL,
    tx_hash text NOT NULL,
    block_time timestamp with time zone NOT NULL
);
