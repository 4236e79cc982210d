-- One version of an order, the newest row with its number (contract 4.23).
SELECT jsonb_build_object('order', pg_temp.node(orders)) AS answer
FROM orders
WHERE id = $1 ->> 'orderId' AND version = coalesce(($1 ->> 'version')::numeric, version)
ORDER BY block_time DESC, seq_num DESC LIMIT 1
