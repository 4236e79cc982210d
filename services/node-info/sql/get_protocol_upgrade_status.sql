-- Whether an announced upgrade is ready. Always one row. node_state has at most one.
SELECT coalesce((SELECT upgrade_ready FROM node_state), false) AS ready
