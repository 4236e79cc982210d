-- `:rows` trades in a thousand blocks, with unique hashes, and with repeating parties, orders and markets. Their
-- candles are not needed, and would take long to compute.
ALTER TABLE trades DISABLE TRIGGER USER;
CREATE OR REPLACE FUNCTION pg_temp.hash(text, int8) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT encode(sha256(($1 || $2)::bytea), 'hex') $$;

INSERT INTO trades
SELECT time + n % ((:rows + 999) / 1000) * interval '1 microsecond', pg_temp.hash('transaction', n / 2), time,
    n % ((:rows + 999) / 1000), pg_temp.hash('trade', n), pg_temp.hash('market', n % 20),
    97000000 + n * 7919 % 1000003, 1 + n * 104729 % 900000,
    pg_temp.hash('party', n * 31 % 1000), pg_temp.hash('party', n * 37 % 1009), 1 + n % 2, pg_temp.hash('order', n),
    pg_temp.hash('order', -1 - n), 1, n % 1000, n % 500, n % 500, 0, 0, 0, 0, 0
FROM (
    SELECT n, timestamptz '2023-01-18 00:00:00+00' + (1 + n / ((:rows + 999) / 1000)) * interval '1 second' AS time
    FROM generate_series(0::int8, :rows - 1) AS n
) AS numbers;
