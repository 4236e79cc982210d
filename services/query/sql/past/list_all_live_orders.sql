WITH RECURSIVE market AS (
    (SELECT market_id FROM orders_current ORDER BY market_id LIMIT 1)
    UNION ALL
    SELECT (SELECT next.market_id FROM orders_current AS next WHERE next.market_id > market.market_id ORDER BY next.market_id LIMIT 1)
    FROM market WHERE market.market_id IS NOT NULL
)
SELECT lived.* FROM market CROSS JOIN LATERAL (
