-- 100,000 withdrawals with hash ids, as the network has them, stored in an order unrelated to that of the index,
-- and as many with numeric ids.
INSERT INTO withdrawals
SELECT id, encode(sha256(('party' || n % 1000)::bytea), 'hex'), n * 1000003 + 7, repeat('a5', 32),
    'STATUS_FINALIZED', n::text, '0x' || encode(sha256(('foreign' || n)::bytea), 'hex'),
    time, time + interval '468 seconds',
    jsonb_build_object('erc20', jsonb_build_object(
        'receiverAddress', '0x' || left(encode(sha256(('address' || n)::bytea), 'hex'), 40))),
    encode(sha256(('tx' || n)::bytea), 'hex'), time
FROM (
    SELECT n, n * interval '1 second' + timestamptz '2023-01-01 00:00:00+00' AS time,
        CASE WHEN n < 100000 THEN encode(sha256(n::text::bytea), 'hex')
            ELSE (1000000000000000000 + n - 100000)::text END AS id
    FROM generate_series(0, 199999::int8) AS n
) AS numbers
