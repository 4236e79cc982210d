-- Entries between two accounts of the network in an asset of their own. Their number replaces the word in capitals
-- in the call of generate_series.
INSERT INTO accounts VALUES
    ('a', 'network', 'RIG', '', 4, 'ab', '2023-01-01'), ('b', 'network', 'RIG', '', 11, 'ab', '2023-01-01');
INSERT INTO ledger SELECT time, 'a', 'b', n, 'ab', time, time, n * 7, n * 5, 'TRANSFER_TYPE_REWARD_PAYOUT' FROM (
    SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time
    FROM generate_series(1, ROWS) AS n
) AS numbers
