-- Blocks 1 to 45, and texts, numbers and times that CSV, COPY or ZIP may treat in a special way. The columns of orders
-- stand for each mark in braces.
INSERT INTO blocks (height, block_time, hash)
SELECT height, timestamptz '2024-01-01 00:00:00.5+00' + height * interval '1 s', 'ab'
FROM generate_series(1, 45) AS height;

INSERT INTO protocol_upgrade_proposals VALUES (25, 'v2', '{}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED',
    'ab', (SELECT block_time FROM blocks WHERE height = 24));

CREATE TEMP TABLE traps (from_height int, to_height int, place int, id text, reference text);

-- Everything that has a meaning in CSV or in COPY's text format, and similar harmless text.
INSERT INTO traps SELECT 1, 10, texts.* FROM (VALUES
    (1, 'a', NULL), (2, 'b', ''), (3, 'c', 'NULL'), (4, 'd', E'\\N'), (5, 'e', E'a\r\nb'),
    (6, 'f', '"'), (7, 'g', ',",""'), (8, 'h', E'\\.'), (9, 'i', E'\n'), (10, 'j', E'\r'),
    (11, 'k', E'é 文 \U0001F600 \uFEFF'), (12, 'l', ' '), (13, 'm', '""'), (14, 'n', E'x\n'),
    (15, E'o\n,', E'\t\x01'), (16, '', E'\\'), (17, 'é', E'\n\n"\r\n"')) AS texts;

-- No rows in 11-20. Long rows in 21-25: with line breaks, and with random text that deflate cannot shorten.
INSERT INTO traps VALUES
    (21, 25, 1, 'a', repeat('x,', 40000)),
    (21, 25, 2, 'b', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 3200) AS n)),
    (21, 25, 3, 'c', repeat(md5('a') || E'\r\n', 500000)),
    (21, 25, 4, 'd', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 60000) AS n)),
    (21, 25, 5, 'e', NULL);

-- The first rows after the header repeat the header: many times, and in 31-40 once before random text.
INSERT INTO traps SELECT 26, 30, n, '{columns}', E'{columns}\n' FROM generate_series(1, 300) AS n;
INSERT INTO traps VALUES
    (31, 40, 0, '{columns}', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 3200) AS n)),
    (31, 40, 1, '', '{columns}');

INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status,
    reference, version, batch_id, created_at, tx_hash, block_time, seq_num)
SELECT id, '', 'p', 1, -5, 1, 1, 1, 1, 1, reference, 1, 1, '1999-12-31 23:59:59.5+14', 'ab',
    (SELECT block_time FROM blocks WHERE height = from_height + place % (to_height - from_height + 1)), place
FROM traps;

INSERT INTO checkpoints SELECT E'hash,block_hash\n' || n, '', n, '', block_time, n
FROM generate_series(1, 9) AS n JOIN blocks ON height = n * 4;

INSERT INTO withdrawals
SELECT id, 'p', 1.50, '', 'STATUS_OPEN', E'\\N', '', '1678-01-01', '2261-12-31 23:59:59.999999+00',
    jsonb_build_object('é"', E'a\r\n"b"', 'null', NULL), '', block_time
FROM unnest('{é,Z,a,_,ab,"a b",A,"",文}'::text[]) WITH ORDINALITY AS ids (id, n)
JOIN blocks ON height = 30 + (n * 7) % 10;
