-- Candles by the definition of the contract, from all trades.
SELECT length.interval, market_id,
    CASE WHEN width IS NULL THEN block_time
         ELSE date_bin(width, synthetic_time, '2000-01-01 00:00:00+00') END AS period_start,
    (array_agg(price ORDER BY synthetic_time))[1] AS open,
    (array_agg(price ORDER BY synthetic_time DESC))[1] AS close,
    max(price) AS high, min(price) AS low, sum(size) AS volume,
    min(synthetic_time) AS first_trade_at, max(synthetic_time) AS last_update_in_period
FROM trades, (VALUES ('block', NULL::interval), ('1_minute', '1 minute'), ('5_minutes', '5 minutes'),
    ('15_minutes', '15 minutes'), ('1_hour', '1 hour'), ('6_hours', '6 hours'), ('1_day', '1 day')
) AS length (interval, width)
GROUP BY 1, 2, 3
