-- A ledger with parts where a party has most entries and parts where it has few.
INSERT INTO accounts SELECT 'x' || n, CASE WHEN n < 20 THEN 'p' ELSE 'q' END, 'X', 'm' || n, 4, 'ab', '2024-01-01'
FROM generate_series(0, 99) AS n;
INSERT INTO ledger SELECT time + n * interval '1 microsecond',
    'x' || CASE WHEN own AND n % 4 < 3 THEN n % 20 ELSE 20 + n % 80 END,
    'x' || CASE WHEN own AND n % 4 > 0 THEN n / 7 % 20 ELSE 20 + n / 3 % 80 END,
    n, 'ab', time, '2024-01-01', 1, 2, 'T'
FROM (
    SELECT n, n / 6000 % 2 = 0 OR n % 100 = 0 AS own,
        timestamptz '2023-12-01' + (n - n % CASE WHEN n % 6000 < 3000 THEN 1500 ELSE 3 END) * interval '1 ms' AS time
    FROM generate_series(0, 23999) AS n
) AS numbers ORDER BY md5(n::text)
