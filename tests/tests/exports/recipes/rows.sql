-- Rows on which tools stumble, added to the fixture: figures beyond 64 bits, times with and without a fraction, NULL beside the
-- empty text, line breaks, numbers of every enum, a market on the second page of the list and one that is on none.

INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, trading_mode, state, market_timestamps,
    position_decimal_places)
SELECT lpad(to_hex(n), 64, '0'), 'aa', '2023-06-20 10:00:00+00',
    format('{"instrument": {"code": "M%s", "name": "", "future": {"quoteName": "USD", "settlementAsset": "VOTE"}}}', n)::jsonb,
    18, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', '{}', 0
FROM generate_series(1, 1100) AS n;

INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, aggressor,
    buy_order, sell_order, type, buyer_maker_fee, seller_auction_batch) VALUES
('2023-06-20 10:00:00.000002+00', 'aa', '2023-06-20 10:00:00+00', 2, repeat('75', 32), repeat('a1', 32), 123456789012345678901, 9223372036854775807, 'b', '', 2, '', '', 2, 123456789012345678901234567, NULL),
('2023-06-20 10:00:01.1+00', 'aa', '2023-06-20 10:00:01+00', 100000, repeat('76', 32), repeat('a2', 32), 7, 12, 'b', '', 0, '', '', 0, 0, NULL),
('2023-06-20 10:59:59.2+00', 'aa', '2023-06-20 10:59:59.120456+00', 9, repeat('77', 32), lpad('1', 64, '0'), 1, 1, 'b', '', NULL, '', '', 3, NULL, 4),
('2023-06-20 10:59:59.3+00', 'aa', '2023-06-20 10:59:59.120456+00', 10, repeat('78', 32), repeat('a9', 32), 1, 1, 'b', '', NULL, '', '', 1, NULL, NULL);

INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason,
    version, batch_id, pegged_offset, pegged_reference, lp_id, created_at, updated_at, expires_at, tx_hash, block_time, seq_num,
    post_only, reduce_only)
SELECT lpad(n::text, 64, '0'), CASE n WHEN 7 THEN repeat('a9', 32) ELSE repeat('a1', 32) END, 'b', n % 3, 123456789012345678901 + n, n, n,
    n % 7, n % 4, n,
    (ARRAY[NULL, '', 'a,"b"', E'two\r\nlines', 'NULL', ' x '])[n % 6 + 1], 0, 1, 0, CASE WHEN n % 2 = 0 THEN 5 END, 0,
    CASE WHEN n > 4 THEN (ARRAY[NULL, ''])[n % 2 + 1] END,
    '2023-06-20 10:00:00+00'::timestamptz + n * interval '0.25 s',
    (ARRAY[NULL, '1970-01-01 00:00:00+00', '2023-06-20 10:00:00.5+00']::timestamptz[])[n % 3 + 1], '1970-01-01 00:00:00+00', 'aa',
    CASE WHEN n > 4 THEN '2023-06-20 10:59:59.120456+00'::timestamptz ELSE '2023-06-20 10:00:01+00' END, 20 + n, n % 2 = 0, n % 2 = 1
FROM generate_series(0, 9) AS n;

INSERT INTO ledger (ledger_entry_time, account_from_id, account_to_id, quantity, tx_hash, block_time, transfer_time,
    account_from_balance, account_to_balance, type) VALUES
('2023-06-20 10:00:00.000001+00', '1', '3', 12345678901234567890123456, 'aa', '2023-06-20 10:00:00+00', '2023-06-20 10:00:00+00', -5, 123456789012345678901234567, 'TRANSFER_TYPE_DEPOSIT'),
('2023-06-20 10:59:59.120457+00', '3', '4', 1, 'aa', '2023-06-20 10:59:59.120456+00', '2023-06-20 10:00:00+00', 0, 0, 'TRANSFER_TYPE_MARGIN_LOW'),
('2023-06-20 10:59:59.120458+00', '4', '1', 5, 'aa', '2023-06-20 10:59:59.120456+00', '2023-06-20 10:00:00+00', 0, 0, NULL);
