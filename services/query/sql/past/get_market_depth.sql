-- The levels of a market's book as of a block, in the form of ../get_market_depth.sql.
-- $1 market, $2 most levels of a side, $3 time of the block. The name in braces is list_live_orders.sql: every order that was live in
-- the market is read.
WITH resting AS MATERIALIZED (
    SELECT side, price, remaining FROM ({orders}) AS live
    WHERE market_id = $1 AND is_live AND status <> 8 AND price <> 0
)
SELECT head.height AS head_height, head.block_time AS head_time, NULL AS side, NULL AS price, NULL AS volume, NULL AS orders
FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true
UNION ALL
SELECT NULL, NULL, 1, buy.price::text, buy.volume::text, buy.orders FROM (
    SELECT price, sum(remaining) AS volume, count(*) AS orders FROM resting WHERE side = 1
    GROUP BY price ORDER BY price DESC LIMIT $2
) AS buy
UNION ALL
SELECT NULL, NULL, 2, sell.price::text, sell.volume::text, sell.orders FROM (
    SELECT price, sum(remaining) AS volume, count(*) AS orders FROM resting WHERE side = 2
    GROUP BY price ORDER BY price LIMIT $2
) AS sell
