-- The levels of a market's book: buys by falling price, then sells by rising price, after a row with the head alone.
-- $1 market, $2 most levels of a side. Each side is a walk along orders_current_book_idx, which ends at the last level.
SELECT head.height AS head_height, head.block_time AS head_time, NULL AS side, NULL AS price, NULL AS volume, NULL AS orders
FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true
UNION ALL
SELECT NULL, NULL, 1, buy.price::text, buy.volume::text, buy.orders FROM (
    SELECT price, sum(remaining) AS volume, count(*) AS orders FROM orders_current
    WHERE market_id = $1 AND side = 1 AND is_live AND status <> 8 AND price <> 0
    GROUP BY price ORDER BY price DESC LIMIT $2
) AS buy
UNION ALL
SELECT NULL, NULL, 2, sell.price::text, sell.volume::text, sell.orders FROM (
    SELECT price, sum(remaining) AS volume, count(*) AS orders FROM orders_current
    WHERE market_id = $1 AND side = 2 AND is_live AND status <> 8 AND price <> 0
    GROUP BY price ORDER BY price LIMIT $2
) AS sell
