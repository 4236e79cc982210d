-- The blocks of a segment.
INSERT INTO blocks (block_time, height, hash)
SELECT timestamptz '2023-01-18 00:00:00+00' + n * interval '1 second', n, encode(sha256(n::text::bytea), 'hex')
FROM generate_series(1, 1000) AS n
