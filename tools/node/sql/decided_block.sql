-- Appends the block of height $1 that a consensus node has decided: its time $2, its hash $3. Nothing when the chain
-- of the store ends elsewhere. Leans on the one row of last_block. Its time is later than that of the block before it.
INSERT INTO blocks (block_time, height, hash)
SELECT greatest($2::timestamptz, block_time + interval '1 microsecond'), $1::int8, $3::text
FROM (
    SELECT block_time, height FROM last_block
    UNION ALL
    SELECT 'epoch', 0
    ORDER BY height DESC
    LIMIT 1
) AS head
WHERE head.height + 1 = $1::int8
