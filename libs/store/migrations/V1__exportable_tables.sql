-- The 15 exportable tables (DATA_MODEL sections 1, 2 and 5): one row per change, never updated.
-- Column order is the CSV column order of exports and history segments.
-- Ids and sort keys compare by bytes (COLLATE "C") whatever locale the database has.

-- Amounts and prices: integers of up to 256 bits, negative for losses.
CREATE DOMAIN bigamount AS numeric(78,0);

CREATE TYPE deposit_status AS ENUM (
    'STATUS_UNSPECIFIED',
    'STATUS_OPEN',
    'STATUS_CANCELLED',
    'STATUS_FINALIZED'
);

CREATE TYPE withdrawal_status AS ENUM (
    'STATUS_UNSPECIFIED',
    'STATUS_OPEN',
    'STATUS_REJECTED',
    'STATUS_FINALIZED'
);

CREATE TYPE liquidity_provision_status AS ENUM (
    'STATUS_UNSPECIFIED',
    'STATUS_ACTIVE',
    'STATUS_STOPPED',
    'STATUS_CANCELLED',
    'STATUS_REJECTED',
    'STATUS_UNDEPLOYED',
    'STATUS_PENDING'
);

CREATE TYPE position_status_type AS ENUM (
    'POSITION_STATUS_UNSPECIFIED',
    'POSITION_STATUS_ORDERS_CLOSED',
    'POSITION_STATUS_CLOSED_OUT',
    'POSITION_STATUS_DISTRESSED'
);

CREATE TYPE market_state_type AS ENUM (
    'STATE_UNSPECIFIED',
    'STATE_PROPOSED',
    'STATE_REJECTED',
    'STATE_PENDING',
    'STATE_CANCELLED',
    'STATE_ACTIVE',
    'STATE_SUSPENDED',
    'STATE_CLOSED',
    'STATE_TRADING_TERMINATED',
    'STATE_SETTLED'
);

CREATE TYPE market_trading_mode_type AS ENUM (
    'TRADING_MODE_UNSPECIFIED',
    'TRADING_MODE_CONTINUOUS',
    'TRADING_MODE_BATCH_AUCTION',
    'TRADING_MODE_OPENING_AUCTION',
    'TRADING_MODE_MONITORING_AUCTION',
    'TRADING_MODE_NO_TRADING'
);

CREATE TYPE auction_trigger_type AS ENUM (
    'AUCTION_TRIGGER_UNSPECIFIED',
    'AUCTION_TRIGGER_BATCH',
    'AUCTION_TRIGGER_OPENING',
    'AUCTION_TRIGGER_PRICE',
    'AUCTION_TRIGGER_LIQUIDITY',
    'AUCTION_TRIGGER_LIQUIDITY_TARGET_NOT_MET',
    'AUCTION_TRIGGER_UNABLE_TO_DEPLOY_LP_ORDERS'
);

CREATE TABLE balances (
    account_id text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    tx_hash    text COLLATE "C" NOT NULL,
    balance    bigamount NOT NULL,
    PRIMARY KEY (block_time, account_id)
);
CREATE INDEX balances_account_id_block_time_idx ON balances (account_id, block_time);

CREATE TABLE blocks (
    block_time timestamptz NOT NULL,
    height     int8 NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    PRIMARY KEY (block_time)
);
CREATE UNIQUE INDEX blocks_height_idx ON blocks (height);

CREATE TABLE checkpoints (
    hash         text NOT NULL,
    block_hash   text NOT NULL,
    block_height int8 NOT NULL,
    tx_hash      text COLLATE "C" NOT NULL,
    block_time   timestamptz NOT NULL,
    seq_num      int8 NOT NULL,
    PRIMARY KEY (block_time, seq_num)
);

CREATE TABLE delegations (
    party_id   text COLLATE "C" NOT NULL,
    node_id    text COLLATE "C" NOT NULL,
    epoch_id   int8 NOT NULL,
    amount     bigamount,
    tx_hash    text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    seq_num    int8 NOT NULL,
    PRIMARY KEY (block_time, seq_num)
);
CREATE INDEX delegations_party_id_node_id_epoch_id_idx ON delegations (party_id, node_id, epoch_id);

CREATE TABLE deposits (
    id                 text COLLATE "C" NOT NULL,
    status             deposit_status NOT NULL,
    party_id           text COLLATE "C" NOT NULL,
    asset              text COLLATE "C" NOT NULL,
    amount             bigamount,
    foreign_tx_hash    text NOT NULL,
    credited_timestamp timestamptz NOT NULL,
    created_timestamp  timestamptz NOT NULL,
    tx_hash            text COLLATE "C" NOT NULL,
    block_time         timestamptz NOT NULL,
    PRIMARY KEY (id, party_id, block_time)
);
CREATE INDEX deposits_party_id_idx ON deposits (party_id);
CREATE INDEX deposits_block_time_idx ON deposits (block_time);

CREATE TABLE ledger (
    ledger_entry_time    timestamptz NOT NULL,
    account_from_id      text COLLATE "C" NOT NULL,
    account_to_id        text COLLATE "C" NOT NULL,
    quantity             bigamount NOT NULL,
    tx_hash              text COLLATE "C" NOT NULL,
    block_time           timestamptz NOT NULL,
    transfer_time        timestamptz NOT NULL,
    account_from_balance bigamount NOT NULL,
    account_to_balance   bigamount NOT NULL,
    type                 text,
    PRIMARY KEY (ledger_entry_time)
);
CREATE INDEX ledger_account_from_id_block_time_ledger_entry_time_idx
    ON ledger (account_from_id, block_time, ledger_entry_time);
CREATE INDEX ledger_account_to_id_block_time_ledger_entry_time_idx
    ON ledger (account_to_id, block_time, ledger_entry_time);
CREATE INDEX ledger_block_time_idx ON ledger (block_time);

CREATE TABLE liquidity_provisions (
    id                text COLLATE "C" NOT NULL,
    party_id          text COLLATE "C",
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    market_id         text COLLATE "C",
    commitment_amount bigamount,
    fee               numeric(94,16),
    sells             jsonb,
    buys              jsonb,
    version           int8,
    status            liquidity_provision_status NOT NULL,
    reference         text,
    tx_hash           text COLLATE "C" NOT NULL,
    block_time        timestamptz NOT NULL,
    PRIMARY KEY (id, block_time)
);
CREATE INDEX liquidity_provisions_block_time_idx ON liquidity_provisions (block_time);

CREATE TABLE margin_levels (
    account_id               text COLLATE "C" NOT NULL,
    "timestamp"              timestamptz NOT NULL,
    maintenance_margin       bigamount,
    search_level             bigamount,
    initial_margin           bigamount,
    collateral_release_level bigamount,
    tx_hash                  text COLLATE "C" NOT NULL,
    block_time               timestamptz NOT NULL,
    PRIMARY KEY (block_time, account_id)
);

CREATE TABLE market_data (
    synthetic_time                timestamptz NOT NULL,
    tx_hash                       text COLLATE "C" NOT NULL,
    block_time                    timestamptz NOT NULL,
    seq_num                       int8 NOT NULL,
    market                        text COLLATE "C" NOT NULL,
    mark_price                    bigamount,
    best_bid_price                bigamount,
    best_bid_volume               bigamount,
    best_offer_price              bigamount,
    best_offer_volume             bigamount,
    best_static_bid_price         bigamount,
    best_static_bid_volume        bigamount,
    best_static_offer_price       bigamount,
    best_static_offer_volume      bigamount,
    mid_price                     bigamount,
    static_mid_price              bigamount,
    open_interest                 bigamount,
    auction_end                   int8,
    auction_start                 int8,
    indicative_price              bigamount,
    indicative_volume             bigamount,
    market_trading_mode           market_trading_mode_type,
    auction_trigger               auction_trigger_type,
    extension_trigger             auction_trigger_type,
    target_stake                  bigamount,
    supplied_stake                bigamount,
    price_monitoring_bounds       jsonb,
    market_value_proxy            text,
    liquidity_provider_fee_shares jsonb,
    market_state                  market_state_type,
    next_mark_to_market           timestamptz,
    PRIMARY KEY (synthetic_time)
);
CREATE INDEX market_data_market_block_time_idx ON market_data (market, block_time);
CREATE INDEX market_data_block_time_idx ON market_data (block_time);

CREATE TABLE markets (
    id                              text COLLATE "C" NOT NULL,
    tx_hash                         text COLLATE "C" NOT NULL,
    block_time                      timestamptz NOT NULL,
    instrument_id                   text,
    tradable_instrument             jsonb,
    decimal_places                  int4,
    fees                            jsonb,
    opening_auction                 jsonb,
    price_monitoring_settings       jsonb,
    liquidity_monitoring_parameters jsonb,
    trading_mode                    market_trading_mode_type,
    state                           market_state_type,
    market_timestamps               jsonb,
    position_decimal_places         int4,
    lp_price_range                  text,
    quadratic_slippage_factor       numeric,
    linear_slippage_factor          numeric,
    PRIMARY KEY (id, block_time)
);
CREATE INDEX markets_block_time_idx ON markets (block_time);

CREATE TABLE orders (
    id               text COLLATE "C" NOT NULL,
    market_id        text COLLATE "C" NOT NULL,
    party_id         text COLLATE "C" NOT NULL,
    side             int2 NOT NULL,
    price            bigamount NOT NULL,
    size             int8 NOT NULL,
    remaining        int8 NOT NULL,
    time_in_force    int2 NOT NULL,
    type             int2 NOT NULL,
    status           int2 NOT NULL,
    reference        text,
    reason           int2,
    version          int4 NOT NULL,
    batch_id         int4 NOT NULL,
    pegged_offset    bigamount,
    pegged_reference int2,
    lp_id            text COLLATE "C",
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz,
    expires_at       timestamptz,
    tx_hash          text COLLATE "C" NOT NULL,
    block_time       timestamptz NOT NULL,
    seq_num          int8 NOT NULL,
    post_only        bool NOT NULL DEFAULT false,
    reduce_only      bool NOT NULL DEFAULT false,
    PRIMARY KEY (block_time, seq_num)
);
CREATE INDEX orders_id_block_time_seq_num_idx ON orders (id, block_time, seq_num);
CREATE INDEX orders_party_id_created_at_id_idx ON orders (party_id, created_at, id);
CREATE INDEX orders_market_id_created_at_id_idx ON orders (market_id, created_at, id);

CREATE TABLE positions (
    market_id                          text COLLATE "C" NOT NULL,
    party_id                           text COLLATE "C" NOT NULL,
    open_volume                        int8 NOT NULL,
    realised_pnl                       numeric NOT NULL,
    unrealised_pnl                     numeric NOT NULL,
    average_entry_price                numeric NOT NULL,
    average_entry_market_price         numeric NOT NULL,
    loss                               numeric NOT NULL,
    adjustment                         numeric NOT NULL,
    tx_hash                            text COLLATE "C" NOT NULL,
    block_time                         timestamptz NOT NULL,
    pending_open_volume                int8 NOT NULL,
    pending_realised_pnl               numeric NOT NULL,
    pending_unrealised_pnl             numeric NOT NULL,
    pending_average_entry_price        numeric NOT NULL,
    pending_average_entry_market_price numeric NOT NULL,
    loss_socialisation_amount          numeric NOT NULL,
    distressed_status                  position_status_type NOT NULL,
    PRIMARY KEY (block_time, party_id, market_id)
);
CREATE INDEX positions_party_id_market_id_block_time_idx ON positions (party_id, market_id, block_time);

CREATE TABLE rewards (
    party_id         text COLLATE "C" NOT NULL,
    asset_id         text COLLATE "C" NOT NULL,
    market_id        text COLLATE "C" NOT NULL,
    reward_type      text COLLATE "C" NOT NULL,
    epoch_id         int8 NOT NULL,
    amount           bigamount,
    percent_of_total float8,
    "timestamp"      timestamptz NOT NULL,
    tx_hash          text COLLATE "C" NOT NULL,
    block_time       timestamptz NOT NULL,
    seq_num          int8 NOT NULL,
    PRIMARY KEY (block_time, seq_num)
);
CREATE INDEX rewards_epoch_id_market_id_asset_id_reward_type_idx
    ON rewards (epoch_id, market_id, asset_id, reward_type);
CREATE INDEX rewards_asset_id_idx ON rewards (asset_id);

CREATE TABLE trades (
    synthetic_time            timestamptz NOT NULL,
    tx_hash                   text COLLATE "C" NOT NULL,
    block_time                timestamptz NOT NULL,
    seq_num                   int8 NOT NULL,
    id                        text COLLATE "C" NOT NULL,
    market_id                 text COLLATE "C" NOT NULL,
    price                     bigamount NOT NULL,
    size                      int8 NOT NULL,
    buyer                     text COLLATE "C" NOT NULL,
    seller                    text COLLATE "C" NOT NULL,
    aggressor                 int2,
    buy_order                 text COLLATE "C" NOT NULL,
    sell_order                text COLLATE "C" NOT NULL,
    type                      int2 NOT NULL,
    buyer_maker_fee           bigamount,
    buyer_infrastructure_fee  bigamount,
    buyer_liquidity_fee       bigamount,
    seller_maker_fee          bigamount,
    seller_infrastructure_fee bigamount,
    seller_liquidity_fee      bigamount,
    buyer_auction_batch       int8,
    seller_auction_batch      int8,
    PRIMARY KEY (synthetic_time)
);
CREATE INDEX trades_market_id_synthetic_time_idx ON trades (market_id, synthetic_time);
CREATE INDEX trades_block_time_idx ON trades (block_time);

CREATE TABLE withdrawals (
    id                  text COLLATE "C" NOT NULL,
    party_id            text COLLATE "C" NOT NULL,
    amount              numeric,
    asset               text COLLATE "C" NOT NULL,
    status              withdrawal_status NOT NULL,
    ref                 text NOT NULL,
    foreign_tx_hash     text NOT NULL,
    created_timestamp   timestamptz NOT NULL,
    withdrawn_timestamp timestamptz NOT NULL,
    ext                 jsonb NOT NULL,
    tx_hash             text COLLATE "C" NOT NULL,
    block_time          timestamptz NOT NULL,
    PRIMARY KEY (id, party_id, block_time)
);
CREATE INDEX withdrawals_party_id_idx ON withdrawals (party_id);
CREATE INDEX withdrawals_block_time_idx ON withdrawals (block_time);
