-- The ledger of a party: 41 accounts of the party and one of each of a thousand others; `:rows` entries in a thousand
-- blocks. Half of the entries are the party's; three quarters of those are between its own accounts, as on a real
-- network, the others alternate between outgoing and incoming.
CREATE OR REPLACE FUNCTION pg_temp.hash(text, int8) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT encode(sha256(($1 || $2)::bytea), 'hex') $$;

INSERT INTO accounts
SELECT pg_temp.hash('account', n), pg_temp.hash('party', greatest(n - 40, 0)), pg_temp.hash('asset', 0),
    CASE WHEN n BETWEEN 1 AND 40 THEN pg_temp.hash('market', n) ELSE '' END,
    CASE WHEN n BETWEEN 1 AND 40 THEN 3 ELSE 4 END,
    pg_temp.hash('transaction', n), timestamptz '2023-01-18 00:00:00+00'
FROM generate_series(0, 1040) AS n;

INSERT INTO ledger
SELECT time + n % ((:rows + 999) / 1000) * interval '1 microsecond',
    pg_temp.hash('account', CASE WHEN n % 2 = 0 AND n % 16 <> 8 THEN n / 4 % 41 ELSE 41 + n % 1000 END),
    pg_temp.hash('account', CASE WHEN n % 2 = 0 AND n % 16 <> 0 THEN (n / 4 + 1) % 41 ELSE 41 + (n + 7) % 1000 END),
    1 + n * 104729 % 1000000007, pg_temp.hash('transaction', n / 10), time, time, 1000000 + n * 31 % 1000003,
    2000000 + n * 37 % 1000003, 'TRANSFER_TYPE_MTM_LOSS'
FROM (
    SELECT n, timestamptz '2023-01-18 00:00:00+00' + (1 + n / ((:rows + 999) / 1000)) * interval '1 second' AS time
    FROM generate_series(0::int8, :rows - 1) AS n
) AS numbers;
