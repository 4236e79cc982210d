-- As many entries as the test puts in place of the word in braces.
INSERT INTO accounts VALUES
    ('from', 'network', 'BUS', '', 4, 'ab', '2023-01-01'), ('to', 'network', 'BUS', '', 11, 'ab', '2023-01-01');
INSERT INTO ledger SELECT time, 'from', 'to', n, 'ab', time, time, n * 7, n * 5, 'TRANSFER_TYPE_REWARD_PAYOUT' FROM (
    SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time
    FROM generate_series(1, {entries}) AS n
) AS numbers
