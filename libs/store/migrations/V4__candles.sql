-- Candles (DATA_MODEL 3.2): one table for all intervals, kept by statement triggers on `trades`, and one view
-- per interval.
--
-- An insert costs the statement's own rows: they are aggregated once and merged into the candles that exist.
-- Merging is exact for any order of arrival: open and close go by trade time (unique, the key of `trades`),
-- high and low by price, volume adds up, and rows that ON CONFLICT DO NOTHING left out are not in `inserted`.
-- Candles are upserted in key order, so that writers of the same candles wait for each other.
--
-- Trades are append-only. An UPDATE is refused; a DELETE (retention, a drill) recomputes the candles that it
-- touched from the trades that are left; a TRUNCATE empties the candles.

CREATE TABLE trades_candle (
    interval              text COLLATE "C" NOT NULL,
    market_id             text COLLATE "C" NOT NULL,
    period_start          timestamptz NOT NULL,
    open                  bigamount NOT NULL,
    close                 bigamount NOT NULL,
    high                  bigamount NOT NULL,
    low                   bigamount NOT NULL,
    volume                numeric NOT NULL,
    first_trade_at        timestamptz NOT NULL,
    last_update_in_period timestamptz NOT NULL,
    PRIMARY KEY (interval, market_id, period_start)
);

-- `opening` and `closing` are (trade time, price) pairs as arrays: their minimum and maximum carry the price of
-- the first and last trade without a sort and without a second look at the rows. Intervals longer than a minute
-- are gathered from the minutes.
CREATE FUNCTION keep_trades_candle() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    WITH trade AS (
        SELECT market_id, block_time, synthetic_time, price, size,
            ARRAY[extract(epoch FROM synthetic_time), price] AS moment
        FROM inserted
    ), minute AS (
        SELECT market_id, date_bin('1 minute', synthetic_time, timestamptz '2000-01-01 00:00:00+00') AS start,
            min(moment) AS opening, max(moment) AS closing, max(price) AS high, min(price) AS low,
            sum(size) AS volume, min(synthetic_time) AS first_at, max(synthetic_time) AS last_at
        FROM trade
        GROUP BY 1, 2
    ), candle AS (
        SELECT 'block' AS interval, market_id, block_time AS start,
            min(moment) AS opening, max(moment) AS closing, max(price) AS high, min(price) AS low,
            sum(size) AS volume, min(synthetic_time) AS first_at, max(synthetic_time) AS last_at
        FROM trade
        GROUP BY 2, 3
        UNION ALL
        SELECT '1_minute', * FROM minute
        UNION ALL
        SELECT length.interval, market_id, date_bin(length.width, start, timestamptz '2000-01-01 00:00:00+00'),
            min(opening), max(closing), max(high), min(low), sum(volume), min(first_at), max(last_at)
        FROM minute, (VALUES ('5_minutes', interval '5 minutes'), ('15_minutes', '15 minutes'),
            ('1_hour', '1 hour'), ('6_hours', '6 hours'), ('1_day', '1 day')) AS length (interval, width)
        GROUP BY 1, 2, 3
    )
    INSERT INTO trades_candle AS kept (interval, market_id, period_start,
        open, close, high, low, volume, first_trade_at, last_update_in_period)
    SELECT interval, market_id, start, opening[2], closing[2], high, low, volume, first_at, last_at
    FROM candle
    ORDER BY interval COLLATE "C", market_id, start
    ON CONFLICT (interval, market_id, period_start) DO UPDATE SET
        open = CASE WHEN EXCLUDED.first_trade_at < kept.first_trade_at THEN EXCLUDED.open ELSE kept.open END,
        close = CASE WHEN EXCLUDED.last_update_in_period > kept.last_update_in_period
                     THEN EXCLUDED.close ELSE kept.close END,
        high = greatest(kept.high, EXCLUDED.high),
        low = least(kept.low, EXCLUDED.low),
        volume = kept.volume + EXCLUDED.volume,
        first_trade_at = least(kept.first_trade_at, EXCLUDED.first_trade_at),
        last_update_in_period = greatest(kept.last_update_in_period, EXCLUDED.last_update_in_period);
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_trades_candle AFTER INSERT ON trades
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_trades_candle();

-- Locks every touched candle first, in key order, and reads the trades in a later statement: what a concurrent
-- writer has merged is then committed and seen, and what it has not yet merged waits for this transaction.
-- Candles that keep a trade are updated in place, so that two deletes of one candle find the same row.
-- IS NOT DISTINCT FROM keeps the planner on the index of block_time, also before the table has statistics.
CREATE FUNCTION recompute_trades_candle() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
DECLARE
    touched trades_candle[];
BEGIN
    WITH touch AS (
        SELECT DISTINCT length.interval, market_id,
            CASE WHEN length.width IS NULL THEN block_time
                 ELSE date_bin(length.width, synthetic_time, timestamptz '2000-01-01 00:00:00+00')
            END AS period_start
        FROM deleted, (VALUES ('block', NULL::interval), ('1_minute', '1 minute'), ('5_minutes', '5 minutes'),
            ('15_minutes', '15 minutes'), ('1_hour', '1 hour'), ('6_hours', '6 hours'), ('1_day', '1 day')
        ) AS length (interval, width)
    ), locked AS (
        SELECT kept FROM trades_candle AS kept JOIN touch USING (interval, market_id, period_start)
        ORDER BY interval, market_id, period_start
        FOR UPDATE OF kept
    )
    SELECT array_agg(kept) INTO touched FROM locked;

    WITH fresh AS (
        SELECT was.interval, was.market_id, was.period_start, sums.*
        FROM unnest(touched) AS was CROSS JOIN LATERAL (
            SELECT min(ARRAY[extract(epoch FROM synthetic_time), price]) AS opening,
                max(ARRAY[extract(epoch FROM synthetic_time), price]) AS closing,
                max(price) AS high, min(price) AS low, sum(size) AS volume,
                min(synthetic_time) AS first_at, max(synthetic_time) AS last_at
            FROM (
                SELECT synthetic_time, price, size FROM trades
                WHERE was.interval = 'block' AND block_time = was.period_start
                    AND market_id IS NOT DISTINCT FROM was.market_id
                UNION ALL
                SELECT synthetic_time, price, size FROM trades
                WHERE was.interval <> 'block' AND market_id = was.market_id
                    AND synthetic_time >= was.period_start
                    AND synthetic_time < was.period_start
                        + replace(nullif(was.interval, 'block'), '_', ' ')::interval
            ) AS left_over
        ) AS sums
    ), emptied AS (
        DELETE FROM trades_candle AS kept USING fresh
        WHERE (kept.interval, kept.market_id, kept.period_start)
            = (fresh.interval, fresh.market_id, fresh.period_start) AND first_at IS NULL
    )
    UPDATE trades_candle AS kept
    SET open = opening[2], close = closing[2], high = fresh.high, low = fresh.low, volume = fresh.volume,
        first_trade_at = first_at, last_update_in_period = last_at
    FROM fresh
    WHERE (kept.interval, kept.market_id, kept.period_start)
        = (fresh.interval, fresh.market_id, fresh.period_start) AND first_at IS NOT NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER recompute_trades_candle AFTER DELETE ON trades
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION recompute_trades_candle();

CREATE FUNCTION empty_trades_candle() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    TRUNCATE trades_candle;
    RETURN NULL;
EXCEPTION WHEN object_in_use THEN
    -- The statement truncates both tables, or an open cursor reads the candles.
    DELETE FROM trades_candle;
    RETURN NULL;
END
$$;
CREATE TRIGGER empty_trades_candle AFTER TRUNCATE ON trades
    FOR EACH STATEMENT EXECUTE FUNCTION empty_trades_candle();

CREATE FUNCTION refuse_trades_update() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    IF EXISTS (SELECT FROM updated) THEN
        RAISE EXCEPTION 'trades are append-only: a stored trade cannot be updated'
            USING ERRCODE = 'restrict_violation', HINT = 'delete the trade and insert it anew';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER refuse_trades_update AFTER UPDATE ON trades
    REFERENCING NEW TABLE AS updated FOR EACH STATEMENT EXECUTE FUNCTION refuse_trades_update();

CREATE VIEW trades_candle_block AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = 'block';
CREATE VIEW trades_candle_1_minute AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '1_minute';
CREATE VIEW trades_candle_5_minutes AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '5_minutes';
CREATE VIEW trades_candle_15_minutes AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '15_minutes';
CREATE VIEW trades_candle_1_hour AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '1_hour';
CREATE VIEW trades_candle_6_hours AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '6_hours';
CREATE VIEW trades_candle_1_day AS
    SELECT market_id, period_start, open, close, high, low, volume, last_update_in_period
    FROM trades_candle WHERE interval = '1_day';
