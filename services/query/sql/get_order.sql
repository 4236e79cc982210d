-- One version of an order, and the head it was read at. Always one row.
-- $1 order id, $2 number of the version, NULL = the newest, $3 time of the block that it is as of,
-- NULL = now. {columns} are those of list_orders.rs. Leans on the index
-- (id, block_time, seq_num).
SELECT head.height AS head_height, head.block_time AS head_time, version.*
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT id, {columns} FROM orders
    WHERE id = $1 AND ($2::int8 IS NULL OR version = $2)
        AND block_time <= coalesce($3::timestamptz, 'infinity')
    ORDER BY block_time DESC, seq_num DESC LIMIT 1
) AS version ON true
