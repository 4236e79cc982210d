-- Whether an upgrade is ready (4.11), and the head it was read at. Always one row. node_state and last_block have at most
-- one. A flag of another height than the head's is over: the sealer that clears it may be late.
SELECT head.height AS head_height, head.block_time AS head_time,
    coalesce((SELECT upgrade_ready AND upgrade_height = head.height FROM node_state), false) AS ready
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
