-- The chain's name and the block at height $1, or the newest one, with the latest time below the block's time + 1 us for each row of a table:
-- those that a writer fills in, and those stated in the same form. Always one row.
WITH head AS (
    SELECT height, hash, block_time FROM blocks WHERE height = coalesce($1, (SELECT height FROM last_block))
), timed AS (
    SELECT synthetic_time - block_time AS after_block, count(*) OVER () AS rows
        FROM trades WHERE block_time = (SELECT block_time FROM head)
    UNION ALL
    SELECT synthetic_time - block_time, count(*) OVER ()
        FROM market_data WHERE block_time = (SELECT block_time FROM head)
    UNION ALL
    SELECT ledger_entry_time - block_time, count(*) OVER ()
        FROM ledger WHERE block_time = (SELECT block_time FROM head)
)
SELECT (SELECT id FROM chain) AS chain_id, height, hash, block_time,
    block_time + coalesce((
        SELECT max(after_block) FROM timed
        WHERE after_block >= interval '0' AND after_block < rows * interval '1 microsecond'
    ), interval '0') AS latest_time
FROM (VALUES (1)) AS always LEFT JOIN head ON true
