-- The newest 500 blocks, with the rules against spam and the length of an epoch after the newest. No parameters; leans
-- on blocks_height_idx, the other tables have few rows.
SELECT block.height, lower(block.hash) AS hash, block.block_time,
    (SELECT jsonb_object_agg(key, value)::text FROM network_parameters_current WHERE key LIKE 'spam.pow.%') AS parameters,
    (SELECT extract(epoch FROM expire_time - start_time)::float8 FROM epochs ORDER BY id DESC, block_time DESC LIMIT 1) AS epoch_s
FROM (SELECT height, hash, block_time FROM blocks ORDER BY height DESC LIMIT 500) AS block
ORDER BY block.height
