-- The levels of a market's book as of a block, in the form of ../get_market_depth.sql.
-- $1 market, $2 most levels of a side, $3 time of the block. What rested then rests still, or was replaced later: of each class of
-- stays (lifetime_class, V15__lifetimes.sql) those that began so recently that they may have lasted.
WITH resting AS MATERIALIZED (
    SELECT side, price, remaining FROM orders_current
    WHERE market_id = $1 AND is_live AND status <> 8 AND price <> 0 AND block_time <= $3::timestamptz
    UNION ALL
    SELECT side, price, remaining
    FROM (
        VALUES (0, interval '4 s'), (1, '64 s'), (2, '1024 s'), (3, '16384 s'), (4, '262144 s'), (5, '4194304 s'),
            (6, '67108864 s'), (7, '1000 years')
    ) AS class (number, longest)
    JOIN orders_rested ON market_id = $1 AND lifetime_class(since, until) = number
        AND since <= $3::timestamptz AND since > $3::timestamptz - longest AND until > $3::timestamptz
), levels AS MATERIALIZED (
    SELECT side, price, sum(remaining) AS volume, count(*) AS orders FROM resting GROUP BY side, price
)
SELECT head.height AS head_height, head.block_time AS head_time, NULL AS side, NULL AS price, NULL AS volume, NULL AS orders
FROM (VALUES (1)) AS always LEFT JOIN last_block AS head ON true
UNION ALL
SELECT NULL, NULL, 1, buy.price::text, buy.volume::text, buy.orders FROM (
    SELECT price, volume, orders FROM levels WHERE side = 1 ORDER BY price DESC LIMIT $2
) AS buy
UNION ALL
SELECT NULL, NULL, 2, sell.price::text, sell.volume::text, sell.orders FROM (
    SELECT price, volume, orders FROM levels WHERE side = 2 ORDER BY price LIMIT $2
) AS sell
