-- A long history for reads as of a block: 200,000 blocks, a million orders of two versions on average, a million positions
-- of two, ten million balances of a hundred thousand accounts, and a million trades.
CREATE FUNCTION pg_temp.id(n int8) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(to_hex(n), 64, '0') $$;
CREATE FUNCTION pg_temp.at(height int8) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
    $$ SELECT timestamptz '2024-01-01 00:00:00+00' + height * interval '1 s' $$;
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';
INSERT INTO blocks (block_time, height, hash) SELECT pg_temp.at(h), h, pg_temp.id(h) FROM generate_series(1, 200000) AS h;

-- Five orders in a block. One in five trades at once, one in ten rests for 20,000 blocks, the others for up to 310. What is
-- to end after the last block rests at it.
INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason,
    version, batch_id, lp_id, created_at, tx_hash, block_time, seq_num, post_only, reduce_only)
SELECT pg_temp.id(n), pg_temp.id(n % 50), pg_temp.id(n % 5000), 1 + n % 2,
    1000000 + n * 7919 % 1000 * (1 - 2 * (n % 2)), 10, CASE WHEN v = last THEN 0 ELSE 10 - v END, 1, 1,
    CASE WHEN v = last THEN 6 - n % 2 * 3 ELSE 1 END, 'reference', 0, 1, 1, '', pg_temp.at(born), '',
    pg_temp.at(born + v * life / 2), n * 8 + v, false, false
FROM (
    SELECT n, 1 + n / 5 AS born, (ARRAY[0, 1, 1, 2, 3])[1 + n % 5] AS last,
        CASE n % 10 WHEN 3 THEN 20000 ELSE 10 + n % 300 END AS life
    FROM generate_series(0::int8, 999999) AS n
) AS new_orders, generate_series(0, last) AS v
WHERE born + v * life / 2 <= 200000;

INSERT INTO positions (party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price,
    average_entry_market_price, loss, adjustment, tx_hash, block_time, pending_open_volume, pending_realised_pnl,
    pending_unrealised_pnl, pending_average_entry_price, pending_average_entry_market_price, loss_socialisation_amount,
    distressed_status)
SELECT pg_temp.id(n / 100), pg_temp.id(n % 100), n, n, n, n, n, 0, 0, '', pg_temp.at(1 + (n * 31 + v * 90001) % 200000), n, n,
    n, n, n, 0, 'POSITION_STATUS_UNSPECIFIED'
FROM generate_series(0::int8, 999999) AS n, generate_series(0, 1) AS v
ON CONFLICT DO NOTHING;

INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time)
SELECT pg_temp.id(n), pg_temp.id(n / 100), pg_temp.id(n % 100), '', 4, '', pg_temp.at(1) FROM generate_series(0, 99999) AS n;
DO $$ BEGIN
    FOR part IN 0..99 LOOP
        INSERT INTO balances (account_id, tx_hash, block_time, balance)
        SELECT pg_temp.id(n), '', pg_temp.at(1 + v * 2000 + n * 31 % 2000), n + v
        FROM generate_series(part * 1000, part * 1000 + 999) AS n, generate_series(0, 99) AS v;
    END LOOP;
END $$;

INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, aggressor,
    buy_order, sell_order, type)
SELECT pg_temp.at(1 + n / 5) + n % 5 * interval '1 us', '', pg_temp.at(1 + n / 5), n % 5, pg_temp.id(n), pg_temp.id(n % 50),
    1000 + n % 77, 1 + n % 9, pg_temp.id(n % 5000), pg_temp.id(n * 7 % 5000), 1, pg_temp.id(n), pg_temp.id(n + 1), 1
FROM generate_series(0, 999999) AS n;
