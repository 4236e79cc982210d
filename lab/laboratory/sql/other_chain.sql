-- Turns the chain of a filled store into that of a private mesh.
UPDATE chain SET id = 'private-1';
INSERT INTO network_parameters (key, value, tx_hash, block_time)
    SELECT key, value, '', now() FROM (VALUES
        ('spam.pow.difficulty', '0'), ('spam.pow.numberOfTxPerBlock', '4294967295'),
        ('spam.pow.increaseDifficulty', '0')
    ) AS rules (key, value)
