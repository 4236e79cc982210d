-- What the lists of markets, assets, trades and positions read (contract 4.18 to 4.21): assets, the newest row per
-- asset, market and position, and indexes for the walks along market data and trades.
--
-- Rows of history that a database already holds are taken over at the end.

CREATE TYPE asset_status AS ENUM (
    'STATUS_UNSPECIFIED',
    'STATUS_PROPOSED',
    'STATUS_REJECTED',
    'STATUS_PENDING_LISTING',
    'STATUS_ENABLED'
);

-- One row per change, like the exportable tables; in no segment and no export.
CREATE TABLE assets (
    id                 text COLLATE "C" NOT NULL,
    name               text NOT NULL,
    symbol             text NOT NULL,
    decimals           int4,
    quantum            numeric,
    source             text,
    erc20_contract     text,
    lifetime_limit     numeric NOT NULL,
    withdraw_threshold numeric NOT NULL,
    status             asset_status NOT NULL,
    tx_hash            text COLLATE "C" NOT NULL,
    block_time         timestamptz NOT NULL,
    PRIMARY KEY (id, block_time)
);

CREATE TABLE assets_current (
    id             text COLLATE "C" NOT NULL,
    name           text NOT NULL,
    symbol         text NOT NULL,
    decimals       int4,
    quantum        numeric,
    erc20_contract text,
    status         asset_status NOT NULL,
    block_time     timestamptz NOT NULL,
    PRIMARY KEY (id)
);

-- Of the definition what a market is called, what it settles in, and how its figures are scaled. An instrument is of one
-- product (`future`, later releases know others), which names the settlement asset and the quote.
CREATE TABLE markets_current (
    id                      text COLLATE "C" NOT NULL,
    code                    text NOT NULL,
    name                    text NOT NULL,
    quote_name              text NOT NULL,
    settlement_asset        text COLLATE "C" NOT NULL,
    decimal_places          int4 NOT NULL,
    position_decimal_places int4 NOT NULL,
    trading_mode            market_trading_mode_type,
    state                   market_state_type,
    opened_at_ns            int8,
    block_time              timestamptz NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE positions_current (
    party_id            text COLLATE "C" NOT NULL,
    market_id           text COLLATE "C" NOT NULL,
    open_volume         int8 NOT NULL,
    realised_pnl        numeric NOT NULL,
    unrealised_pnl      numeric NOT NULL,
    average_entry_price numeric NOT NULL,
    block_time          timestamptz NOT NULL,
    PRIMARY KEY (party_id, market_id)
);
-- NULLS FIRST is the mark of the walks that filter (see V5__walks.sql), here and below.
CREATE INDEX positions_current_market_id_party_id_idx ON positions_current (market_id, party_id NULLS FIRST);

CREATE FUNCTION keep_assets_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO assets_current AS kept (id, name, symbol, decimals, quantum, erc20_contract, status, block_time)
    SELECT DISTINCT ON (id) id, name, symbol, decimals, quantum, erc20_contract, status, block_time
    FROM inserted
    ORDER BY id, block_time DESC
    ON CONFLICT (id) DO UPDATE
        SET name = EXCLUDED.name, symbol = EXCLUDED.symbol, decimals = EXCLUDED.decimals, quantum = EXCLUDED.quantum,
            erc20_contract = EXCLUDED.erc20_contract, status = EXCLUDED.status, block_time = EXCLUDED.block_time
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_assets_current AFTER INSERT ON assets
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_assets_current();

-- Texts and times of a market's definition, which is the network's own JSON: what is not in it, or not what is expected,
-- is empty and stops no writer.
CREATE FUNCTION instrument_text(instrument jsonb, path jsonpath) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_path_query_first(instrument, path, '{}', true) #>> '{}', '')
$$;
-- Nanoseconds since the Unix epoch; not set when 0, negative or beyond 64 bits.
CREATE FUNCTION time_ns(given text) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN given ~ '^[1-9][0-9]{0,18}$' THEN CASE WHEN given::numeric <= 9223372036854775807 THEN given::int8 END END
$$;

CREATE FUNCTION keep_markets_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO markets_current AS kept
    SELECT DISTINCT ON (id) id, instrument_text(tradable_instrument, '$.instrument.code'),
        instrument_text(tradable_instrument, '$.instrument.name'),
        instrument_text(tradable_instrument, '$.instrument.*.quoteName'),
        instrument_text(tradable_instrument, '$.instrument.*.settlementAsset'),
        coalesce(decimal_places, 0), coalesce(position_decimal_places, 0), trading_mode, state,
        time_ns(market_timestamps ->> 'open'), block_time
    FROM inserted
    ORDER BY id, block_time DESC
    ON CONFLICT (id) DO UPDATE
        SET code = EXCLUDED.code, name = EXCLUDED.name, quote_name = EXCLUDED.quote_name,
            settlement_asset = EXCLUDED.settlement_asset, decimal_places = EXCLUDED.decimal_places,
            position_decimal_places = EXCLUDED.position_decimal_places, trading_mode = EXCLUDED.trading_mode,
            state = EXCLUDED.state, opened_at_ns = EXCLUDED.opened_at_ns, block_time = EXCLUDED.block_time
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_markets_current AFTER INSERT ON markets
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_markets_current();

CREATE FUNCTION keep_positions_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO positions_current AS kept
        (party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time)
    SELECT DISTINCT ON (party_id, market_id)
        party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time
    FROM inserted
    ORDER BY party_id, market_id, block_time DESC
    ON CONFLICT (party_id, market_id) DO UPDATE
        SET open_volume = EXCLUDED.open_volume, realised_pnl = EXCLUDED.realised_pnl,
            unrealised_pnl = EXCLUDED.unrealised_pnl, average_entry_price = EXCLUDED.average_entry_price,
            block_time = EXCLUDED.block_time
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_positions_current AFTER INSERT ON positions
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_positions_current();

-- The newest data of a market is one step down its index.
DROP INDEX market_data_market_block_time_idx;
CREATE INDEX market_data_market_block_time_idx ON market_data (market, block_time NULLS FIRST);

-- The markets with the prices of now. LATERAL: only the markets of a page are looked up.
CREATE VIEW markets_with_prices AS
    SELECT market.*, newest.mark_price, newest.best_bid_price, newest.best_offer_price, newest.open_interest
    FROM markets_current AS market
    LEFT JOIN LATERAL (
        SELECT mark_price, best_bid_price, best_offer_price, open_interest
        FROM market_data
        WHERE market_data.market = market.id
        ORDER BY market_data.block_time DESC NULLS LAST, market_data.seq_num DESC
        LIMIT 1
    ) AS newest ON true;

-- Trades of a market, of a party on either side, and of a party in a market.
DROP INDEX trades_market_id_synthetic_time_idx;
CREATE INDEX trades_market_id_synthetic_time_idx ON trades (market_id, synthetic_time NULLS FIRST);
CREATE INDEX trades_buyer_synthetic_time_idx ON trades (buyer, synthetic_time NULLS FIRST);
CREATE INDEX trades_seller_synthetic_time_idx ON trades (seller, synthetic_time NULLS FIRST);
CREATE INDEX trades_buyer_market_id_synthetic_time_idx ON trades (buyer, market_id, synthetic_time NULLS FIRST);
CREATE INDEX trades_seller_market_id_synthetic_time_idx ON trades (seller, market_id, synthetic_time NULLS FIRST);

INSERT INTO markets_current
SELECT DISTINCT ON (id) id, instrument_text(tradable_instrument, '$.instrument.code'),
    instrument_text(tradable_instrument, '$.instrument.name'),
    instrument_text(tradable_instrument, '$.instrument.*.quoteName'),
    instrument_text(tradable_instrument, '$.instrument.*.settlementAsset'),
    coalesce(decimal_places, 0), coalesce(position_decimal_places, 0), trading_mode, state,
    time_ns(market_timestamps ->> 'open'), block_time
FROM markets
ORDER BY id, block_time DESC;

INSERT INTO positions_current
    (party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time)
SELECT DISTINCT ON (party_id, market_id)
    party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time
FROM positions
ORDER BY party_id, market_id, block_time DESC;
