-- A block, and what reads as of it need to know: the first and the newest block, the chain, the newest sealed height, and the
-- newest epochs that had delegations and rewards. Always one row.
-- $1 height, NULL = none. Leans on blocks_height_idx.
SELECT head.height AS head_height, head.block_time AS head_time, block.block_time,
    (SELECT min(height) FROM blocks) AS first_height, chain.id AS chain_id,
    block.height <= sealed.to_height AS is_sealed,
    (SELECT max(epoch_id) FROM first_rows_of_epochs AS row
        WHERE row.history = 'delegations' AND row.first_time <= block.block_time) AS delegation_epoch,
    (SELECT max(epoch_id) FROM first_rows_of_epochs AS row
        WHERE row.history = 'rewards' AND row.first_time <= block.block_time) AS reward_epoch
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN chain ON true
LEFT JOIN last_snapshot_span AS sealed ON true
LEFT JOIN LATERAL (
    SELECT height, block_time FROM blocks WHERE height <= $1::int8 ORDER BY height DESC LIMIT 1
) AS block ON true
