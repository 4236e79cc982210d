-- The candles of one market and interval, from its trades (contract 4.12, DATA_MODEL 3.2).
WITH parts AS (
    SELECT part[1] AS interval, lower(part[2]) AS market
    FROM regexp_match($1 ->> 'candleId', '^trades_candle_(.*)_([0-9A-Fa-f]{64})$') AS part
), traded AS (
    SELECT synthetic_time, price, size, CASE interval WHEN 'block' THEN block_time
        ELSE date_bin(replace(interval, '_', ' ')::interval, synthetic_time, '2000-01-01 00:00:00+00') END AS start
    FROM trades JOIN parts ON market = market_id
)
SELECT 'candle' AS list, jsonb_build_array(pg_temp.ns(start)) AS key, jsonb_build_object(
    'start', pg_temp.ns(start)::text, 'lastUpdate', pg_temp.ns(max(synthetic_time))::text,
    'open', (array_agg(price ORDER BY synthetic_time))[1]::text,
    'close', (array_agg(price ORDER BY synthetic_time DESC))[1]::text,
    'high', max(price)::text, 'low', min(price)::text, 'volume', sum(size)::text
) AS node
FROM traded
WHERE pg_temp.within(start, $1 ->> 'fromTimestamp', $1 ->> 'toTimestamp')
GROUP BY start
ORDER BY start
