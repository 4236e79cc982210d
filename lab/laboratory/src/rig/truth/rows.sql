-- Rows that the writer of the drill inserts, one section each, after the functions and the rows of the first block.
-- `{time}` is the time of their block, `{number}` is new for each row. Few keys have many versions; keys that exist are
-- not written again, since a stored row never changes.
CREATE FUNCTION pg_temp.id(kind text, number int) RETURNS text LANGUAGE sql AS
    $$ SELECT kind || lpad(to_hex(number), 63, '0') $$;
CREATE FUNCTION pg_temp.pick(most int) RETURNS int LANGUAGE sql VOLATILE AS
    $$ SELECT 1 + floor(random() * most)::int $$;
CREATE FUNCTION pg_temp.write_order(n int, at timestamptz, number int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status, version,
        batch_id, created_at, tx_hash, block_time, seq_num)
    SELECT pg_temp.id('9', n), pg_temp.id('a', 1 + n % 2), pg_temp.id('b', 1 + n % 3), 1 + n % 2, pg_temp.pick(5), 9,
        pg_temp.pick(9), 1, 1, ('{1, 1, 7, 3, 5, 8}'::int[])[pg_temp.pick(6)], number % 3, 0, at, 'tx', at, number
$$;
CREATE FUNCTION pg_temp.account(n int, at timestamptz) RETURNS SETOF accounts LANGUAGE sql AS $$
    SELECT n::text, CASE n % 4 WHEN 0 THEN 'network' ELSE pg_temp.id('b', n % 4) END, pg_temp.id('f', 1),
        CASE n % 3 WHEN 0 THEN '' ELSE pg_temp.id('a', n % 3) END, ('{1, 2, 3, 4, 9, 12}'::int[])[1 + n / 4], 'tx', at
$$;

INSERT INTO network_limits VALUES ({time}, 'tx', true, false, false, false, false, {time}, to_timestamp(0));
INSERT INTO accounts SELECT account.* FROM generate_series(0, 7) AS n, pg_temp.account(n, {time}) AS account;
INSERT INTO withdrawals SELECT pg_temp.id('d', n), pg_temp.id('b', 1), 250, pg_temp.id('f', 1), 'STATUS_OPEN', '0', '',
    {time}, to_timestamp(0), '{}', 'tx', {time} FROM generate_series(1, 2) AS n;
INSERT INTO oracle_specs SELECT pg_temp.id('e', n), {time}, {time}, NULL, NULL, 'STATUS_ACTIVE', 'tx', {time}, NULL
    FROM generate_series(1, 2) AS n;
SELECT pg_temp.write_order(n, {time}, n) FROM generate_series(1, 2) AS n;

SELECT pg_temp.write_order(pg_temp.pick(40), {time}, {number});

INSERT INTO deposits VALUES (pg_temp.id('8', pg_temp.pick(4)),
    (ARRAY['STATUS_OPEN', 'STATUS_FINALIZED'])[pg_temp.pick(2)]::deposit_status, pg_temp.id('b', 1), pg_temp.id('f', 1),
    pg_temp.pick(1000000), '', {time}, '2023-06-20 10:00:00+00', 'tx', {time}) ON CONFLICT DO NOTHING;

INSERT INTO accounts SELECT account.* FROM pg_temp.account(7 + pg_temp.pick(16), {time}) AS account ON CONFLICT DO NOTHING;

INSERT INTO balances VALUES ((pg_temp.pick(12) - 1)::text, {time}, 'tx', pg_temp.pick(1000000)) ON CONFLICT DO NOTHING;

INSERT INTO delegations VALUES (pg_temp.id('b', pg_temp.pick(3)), pg_temp.id('c', pg_temp.pick(3)), pg_temp.pick(4),
    pg_temp.pick(1000000), 'tx', {time}, {number});

INSERT INTO withdrawals VALUES (pg_temp.id('d', pg_temp.pick(2)), pg_temp.id('b', 1), 250, pg_temp.id('f', 1),
    (ARRAY['STATUS_OPEN', 'STATUS_REJECTED', 'STATUS_FINALIZED'])[pg_temp.pick(3)]::withdrawal_status,
    pg_temp.pick(1000000), '', {time}, to_timestamp(0), '{}', 'tx', {time}) ON CONFLICT DO NOTHING;

INSERT INTO oracle_specs VALUES (pg_temp.id('e', pg_temp.pick(2)), '2023-06-20 10:00:01+00', {time}, NULL, NULL,
    (ARRAY['STATUS_ACTIVE', 'STATUS_DEACTIVATED'])[pg_temp.pick(2)]::oracle_spec_status, 'tx', {time}, NULL)
    ON CONFLICT DO NOTHING;

INSERT INTO rewards VALUES (pg_temp.id('b', 1), pg_temp.id('f', 1), pg_temp.id('a', pg_temp.pick(2)),
    (ARRAY['ACCOUNT_TYPE_GLOBAL_REWARD', 'ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES'])[pg_temp.pick(2)],
    pg_temp.pick(4), pg_temp.pick(1000000), 1, {time}, 'tx', {time}, {number});

INSERT INTO trades VALUES ({time} + {number} % 1000000 * interval '1 us', 'tx', {time}, {number}, 'trade',
    pg_temp.id('a', pg_temp.pick(2)), pg_temp.pick(1000000), pg_temp.pick(100), 'b', 's', 1, 'bo', 'so', 1)
    ON CONFLICT DO NOTHING;

INSERT INTO protocol_upgrade_proposals VALUES (1000000 + pg_temp.pick(4), 'v1',
    ARRAY(SELECT pg_temp.id('c', node) FROM generate_series(1, pg_temp.pick(3)) AS node),
    ('PROTOCOL_UPGRADE_PROPOSAL_STATUS_' || (ARRAY['PENDING', 'APPROVED', 'REJECTED'])[pg_temp.pick(3)])
        ::protocol_upgrade_proposal_status, 'tx', {time}) ON CONFLICT DO NOTHING;

INSERT INTO network_limits VALUES ({time}, 'tx', random() < 0.5, random() < 0.5, random() < 0.5, random() < 0.5,
    random() < 0.5, {time}, to_timestamp(0)) ON CONFLICT DO NOTHING;
