-- Rows for single reads: many more than are read in the lifetime of a cache entry.
INSERT INTO withdrawals
SELECT encode(sha256(n::text::bytea), 'hex'), encode(sha256(('party' || n % 1000)::bytea), 'hex'), n,
    repeat('a5', 32), 'STATUS_FINALIZED', n::text, '0x' || encode(sha256(('foreign' || n)::bytea), 'hex'),
    time, time, '{}', encode(sha256(('tx' || n)::bytea), 'hex'), time
FROM (
    SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time
    FROM generate_series(1, 20000) AS n
) AS numbers
