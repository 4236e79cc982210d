-- Whether an announced upgrade is ready, and the head it was read at. Always one row. node_state has at most one.
SELECT head.height AS head_height, head.block_time AS head_time,
    coalesce((SELECT upgrade_ready FROM node_state), false) AS ready
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
