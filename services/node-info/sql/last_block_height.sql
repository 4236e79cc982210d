-- The newest stored block with the chain's id and the proof-of-work parameters of the same moment. Always one
-- row, with a NULL height while the store has no block. Every table here has one row, or one per key.
SELECT block.height AS head_height, block.block_time AS head_time, lower(block.hash) AS hash, coalesce((SELECT id FROM chain), '') AS chain_id,
    (SELECT value FROM network_parameters_current WHERE key = 'spam.pow.hashFunction') AS hash_function,
    (SELECT value FROM network_parameters_current WHERE key = 'spam.pow.difficulty') AS "spam.pow.difficulty",
    (SELECT value FROM network_parameters_current WHERE key = 'spam.pow.numberOfPastBlocks') AS "spam.pow.numberOfPastBlocks",
    (SELECT value FROM network_parameters_current WHERE key = 'spam.pow.numberOfTxPerBlock') AS "spam.pow.numberOfTxPerBlock",
    (SELECT value FROM network_parameters_current WHERE key = 'spam.pow.increaseDifficulty') AS "spam.pow.increaseDifficulty"
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS block ON true
