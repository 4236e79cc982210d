-- Figures of many digits, an asset whose decimals cannot be meant, and a trade in a market that counts tens.
INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, lifetime_limit,
    withdraw_threshold, status, tx_hash, block_time) VALUES
    (repeat('f4', 32), 'Too fine', 'FINE', 2147483647, 1, '', '', 0, 0,
        'STATUS_ENABLED', 'aa', '2023-06-20 10:00:00+00');
INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time) VALUES
    ('23', repeat('b7', 32), repeat('f4', 32), '', 4, 'aa', '2023-06-20 10:00:00+00'),
    ('24', repeat('b7', 32), repeat('f1', 32), '', 4, 'aa', '2023-06-20 10:00:00+00');
INSERT INTO balances (account_id, block_time, tx_hash, balance) VALUES
    ('23', '2023-06-20 10:00:00+00', 'aa', 123456789012345678901234567),
    ('24', '2023-06-20 10:00:00+00', 'aa', 123456789012345678901234567);
INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size,
    buyer, seller, aggressor, buy_order, sell_order, type) VALUES
    ('2023-06-20 10:59:59.2+00', 'aa', '2023-06-20 10:59:59.2+00', 0, repeat('75', 32),
        repeat('a2', 32), 7, 12, repeat('b7', 32), repeat('b8', 32), 1, '', '', 1);
