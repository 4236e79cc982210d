-- Defines the chain of a private mesh: no proof of work, and no limit on the transactions of one party per block.
INSERT INTO chain (id) VALUES ('private-1');
INSERT INTO network_parameters (key, value, tx_hash, block_time) VALUES
    ('spam.pow.difficulty', '0', '', 'epoch'), ('spam.pow.numberOfTxPerBlock', '4294967295', '', 'epoch')
