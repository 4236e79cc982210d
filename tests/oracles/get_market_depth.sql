-- The sums of the live orders of a market at each price (contract 4.24).
WITH newest AS (
    SELECT DISTINCT ON (id) orders, market_id, side, price, remaining, status
    FROM orders ORDER BY id, block_time DESC, seq_num DESC
), level AS (
    SELECT side, price, jsonb_build_object(
            'price', price::text, 'volume', sum(remaining)::text, 'orders', count(*)
        ) AS node, row_number() OVER (PARTITION BY side ORDER BY CASE side WHEN 1 THEN -price ELSE price END) AS place
    FROM newest
    WHERE market_id = $1 ->> 'marketId' AND pg_temp.is_live(orders) AND status <> 8 AND price <> 0
    GROUP BY side, price
), shown AS (
    SELECT * FROM level WHERE place <= least(coalesce(nullif(($1 ->> 'maxDepth')::numeric, 0), 1000), 1000)
)
SELECT jsonb_build_object('depth', jsonb_build_object(
    'marketId', $1 ->> 'marketId',
    'buy', coalesce((SELECT jsonb_agg(node ORDER BY place) FROM shown WHERE side = 1), '[]'),
    'sell', coalesce((SELECT jsonb_agg(node ORDER BY place) FROM shown WHERE side = 2), '[]')
)) AS answer
