-- The newest block, with the rules against spam and the length of an epoch after it. No parameters; leans on
-- blocks_height_idx, the other tables have few rows.
SELECT height, lower(hash) AS hash, block_time,
    (SELECT jsonb_object_agg(key, value)::text FROM network_parameters_current WHERE key LIKE 'spam.pow.%') AS parameters,
    (SELECT extract(epoch FROM expire_time - start_time)::float8 FROM epochs ORDER BY id DESC, block_time DESC LIMIT 1) AS epoch_s
FROM blocks ORDER BY height DESC LIMIT 1
