-- Three parties' ledgers among a thousand others': `:rows` entries in a thousand blocks. Half of the entries are those of
-- party 0, which has 41 accounts, a fiftieth those of party 1, which has as many; three quarters of them are between the
-- party's own accounts, as on a real network. A sixteenth are those of party 2, which has one account.
CREATE OR REPLACE FUNCTION pg_temp.hash(text, int8) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT encode(sha256(($1 || $2)::bytea), 'hex') $$;

INSERT INTO accounts
SELECT pg_temp.hash('account', n), pg_temp.hash('party', CASE WHEN n <= 81 THEN n / 41 ELSE n - 80 END),
    pg_temp.hash('asset', 0), CASE WHEN n < 82 AND n % 41 > 0 THEN pg_temp.hash('market', n) ELSE '' END,
    CASE WHEN n < 82 AND n % 41 > 0 THEN 3 ELSE 4 END,
    pg_temp.hash('transaction', n), timestamptz '2023-01-18 00:00:00+00'
FROM generate_series(0, 1082) AS n;

INSERT INTO ledger
SELECT time + n % ((:rows + 999) / 1000) * interval '1 microsecond',
    pg_temp.hash('account', CASE
        WHEN party = 2 AND n % 32 = 1 THEN 82
        WHEN party < 2 AND n / 2 % 8 <> 4 THEN 41 * party + n / 4 % 41
        ELSE 83 + n % 1000
    END),
    pg_temp.hash('account', CASE
        WHEN party = 2 AND n % 32 <> 1 THEN 82
        WHEN party < 2 AND n / 2 % 8 <> 0 THEN 41 * party + (n / 4 + 1) % 41
        ELSE 83 + (n + 7) % 1000
    END),
    1 + n * 104729 % 1000000007, pg_temp.hash('transaction', n / 10), time, time, 1000000 + n * 31 % 1000003,
    2000000 + n * 37 % 1000003, 'TRANSFER_TYPE_MTM_LOSS'
FROM (
    SELECT n, CASE WHEN n % 2 = 0 THEN 0 WHEN n % 50 = 3 THEN 1 WHEN n % 16 = 1 THEN 2 ELSE 3 END AS party,
        timestamptz '2023-01-18 00:00:00+00' + (1 + n / ((:rows + 999) / 1000)) * interval '1 second' AS time
    FROM generate_series(0::int8, :rows - 1) AS n
) AS numbers;
