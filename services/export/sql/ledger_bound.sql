-- The head that bounds a ledger export, and the chain's id. Always one row.
SELECT head.height AS head_height, head.block_time AS head_time, coalesce((SELECT id FROM chain), '') AS chain_id
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
