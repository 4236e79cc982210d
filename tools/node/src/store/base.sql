-- Five blocks, rules that come with one of them, and two epochs.
INSERT INTO chain (id) VALUES ('net-1');
INSERT INTO blocks
    SELECT to_timestamp(height), height, repeat('A', 63) || height FROM generate_series(1, 5) AS height;
INSERT INTO network_parameters (key, value, tx_hash, block_time) VALUES
    ('spam.pow.difficulty', '9', '', to_timestamp(3)), ('spam.pow.increaseDifficulty', '1', '', to_timestamp(3)),
    ('spam.pow.numberOfPastBlocks', '4', '', to_timestamp(3));
INSERT INTO epochs (id, start_time, expire_time, tx_hash, block_time) VALUES
    (1, to_timestamp(0), to_timestamp(1000), '', to_timestamp(1)),
    (2, to_timestamp(0), to_timestamp(4800), '', to_timestamp(2));
