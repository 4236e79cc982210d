-- 200 delegations of each of a hundred parties.
INSERT INTO delegations_current
SELECT lpad(to_hex(party), 64, '0'), node, 1, 1000000000, repeat('a5', 32),
    timestamptz '2023-01-01 00:00:00+00', 1
FROM generate_series(1, 100) AS party, (
    SELECT encode(sha256(('node' || n)::bytea), 'hex') FROM generate_series(1, 199) AS n
    UNION ALL SELECT repeat('f', 64)
) AS nodes (node)
