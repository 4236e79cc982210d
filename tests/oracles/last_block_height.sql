-- The newest block with the rules against spam that are in force (contract 4.8, DATA_MODEL 4); the node is at that block.
WITH newest AS (
    SELECT DISTINCT ON (key) key, value FROM network_parameters ORDER BY key, block_time DESC
), parameters AS (
    SELECT jsonb_object_agg(key, value) AS all_of_them FROM newest
)
SELECT jsonb_build_object(
    'height', height::text, 'hash', hash, 'chainId', (SELECT id FROM chain),
    'spamPowHashFunction', 'sha3_24_rounds',
    'spamPowDifficulty', coalesce((all_of_them ->> 'spam.pow.difficulty')::int, 15),
    'spamPowNumberOfPastBlocks', coalesce((all_of_them ->> 'spam.pow.numberOfPastBlocks')::int, 100),
    'spamPowNumberOfTxPerBlock', coalesce((all_of_them ->> 'spam.pow.numberOfTxPerBlock')::int, 2),
    'spamPowIncreasingDifficulty', coalesce(all_of_them ->> 'spam.pow.increaseDifficulty', '0') = '1'
) AS answer
FROM blocks, parameters
ORDER BY height DESC LIMIT 1
