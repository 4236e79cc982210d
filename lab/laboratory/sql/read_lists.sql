-- Paths of list pages.
SELECT format('/api/v2/candle?candleId=trades_candle_%s_%s&pagination.first=%s', interval, id, n)
FROM (SELECT DISTINCT market_id AS id FROM trades) AS markets, generate_series(1, 40) AS n,
    unnest(ARRAY['1_minute', '1_hour']) AS interval
UNION ALL SELECT '/api/v2/rewards/epoch/summaries?pagination.first=' || n FROM generate_series(1, 40) AS n
UNION ALL SELECT DISTINCT '/accounts?party=' || party_id FROM accounts WHERE party_id ~ '^[0-9a-f]{64}$'
