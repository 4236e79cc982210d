-- Appends one empty block to the chain of the store. No parameters; leans on the one row of last_block.
-- Its time is now, and later than the block before it even when the clock went back.
INSERT INTO blocks (block_time, height, hash)
SELECT
    greatest(clock_timestamp(), block_time + interval '1 microsecond'),
    height + 1,
    encode(sha256(convert_to(hash || ':' || (height + 1), 'UTF8')), 'hex')
FROM (
    SELECT block_time, height, hash FROM last_block
    UNION ALL
    SELECT 'epoch', 0, ''
    ORDER BY height DESC
    LIMIT 1
) AS head
RETURNING height
