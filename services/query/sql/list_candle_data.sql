-- One page of candles: up to $6 rows of the walk, whether a row lies at its start or behind it, and the head.
-- At least one row, without a candle when the walk meets none.
-- $1 interval, $2 market. $3 from, $4 to: NULL = open. $5 whether the walk goes towards earlier candles.
-- $7 start of the walk, exclusive; NULL = at the end of the list that it comes from.
-- Leans on the primary key (interval, market_id, period_start). Planned for the values at hand: the branches not
-- taken vanish. What lies behind is looked for in key order, so that the first index entry tells.
WITH matching AS NOT MATERIALIZED (
    SELECT period_start, last_update_in_period, high, low, open, close, volume
    FROM trades_candle
    WHERE interval = $1 AND market_id = $2
      AND ($3::timestamptz IS NULL OR period_start >= $3)
      AND ($4::timestamptz IS NULL OR period_start < $4)
), page AS (
    (SELECT * FROM matching
     WHERE $5 AND ($7::timestamptz IS NULL OR period_start < $7)
     ORDER BY period_start DESC LIMIT $6)
    UNION ALL
    (SELECT * FROM matching
     WHERE NOT $5 AND ($7::timestamptz IS NULL OR period_start > $7)
     ORDER BY period_start LIMIT $6)
), behind AS (
    (SELECT FROM matching WHERE $5 AND period_start >= $7 ORDER BY period_start LIMIT 1)
    UNION ALL
    (SELECT FROM matching WHERE NOT $5 AND period_start <= $7 ORDER BY period_start DESC LIMIT 1)
)
SELECT head.height AS head_height, head.block_time AS head_time, EXISTS (SELECT FROM behind) AS behind,
    page.period_start, page.last_update_in_period, page.high::text AS high, page.low::text AS low,
    page.open::text AS open, page.close::text AS close, page.volume::text AS volume
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
