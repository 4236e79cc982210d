-- Entries of p with more accounts than a cached walk may have looked up.
INSERT INTO accounts SELECT 'x' || n, 'q' || n, 'X', '', 4, 'ab', '2024-01-01' FROM generate_series(1, 17000) AS n;
INSERT INTO ledger SELECT time, 'a', 'x' || n, 5, 'ab', time, '2024-01-01', 1, 2, NULL FROM (
    SELECT n, timestamptz '2023-12-01' + n * interval '1 second' AS time FROM generate_series(1, 17000) AS n
) AS numbers
