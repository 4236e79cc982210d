-- The small database of the cases: three blocks of one market, a few rows of every kind, with the traps of JSON
-- in them (27-digit amounts, NULL, quotes, non-ASCII, stored numbers outside their lists).
-- Ids are one byte repeated: a1-a3 markets; b1, b2 parties; c1, c2 nodes; d1-d3 withdrawals; d4-d6 deposits; e1-e3 oracle
-- specs; f1, f2 assets; 11-18 orders; 71-74 trades, 81-94 orders of these, which are not stored.

INSERT INTO chain (id) VALUES ('testnet-0001');

INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, lifetime_limit, withdraw_threshold, status,
    tx_hash, block_time) VALUES
(repeat('f1', 32), 'Test dollar', 'tUSD', 6, 1, '', '0x67175Da1D5e966e40D11c4B2519392B2058373de', 0, 0, 'STATUS_PROPOSED', 'aa', '2023-06-20 10:00:00+00'),
(repeat('f1', 32), 'Test dollar', 'tUSD', 6, 1000000, '', '0x67175Da1D5e966e40D11c4B2519392B2058373de', 0, 0, 'STATUS_ENABLED', 'aa', '2023-06-20 10:00:01+00'),
(repeat('f2', 32), 'A "quoted", ünusual name', 'ODD', 18, 1, '', '', 0, 0, 'STATUS_REJECTED', 'aa', '2023-06-20 10:00:00+00'),
('VOTE', 'Votes', 'VOTE', NULL, NULL, '10000', NULL, 0, 0, 'STATUS_ENABLED', 'aa', '2023-06-20 10:00:00+00');

INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, trading_mode, state, market_timestamps,
    position_decimal_places) VALUES
(repeat('a1', 32), 'aa', '2023-06-20 10:00:00+00', '{"instrument": {"code": "BTC/USD", "name": "Bitcoin", "future": {"quoteName": "USD",
    "settlementAsset": "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1"}}}', 5, 'TRADING_MODE_OPENING_AUCTION', 'STATE_PENDING', '{"open": 0}', 3),
(repeat('a1', 32), 'aa', '2023-06-20 10:00:01+00', '{"instrument": {"code": "BTC/USD", "name": "Bitcoin future", "future": {"quoteName": "USD",
    "settlementAsset": "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1"}}}', 5, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', '{"open": 1687255201000000123}', 3),
(repeat('a2', 32), 'aa', '2023-06-20 10:00:00+00', '{"instrument": {"code": "ÜBER/\"X\"", "name": "", "metadata": {"tags": []},
    "perpetual": {"quoteName": "X", "settlementAsset": "VOTE"}}}', 0, 'TRADING_MODE_NO_TRADING', 'STATE_SETTLED', '{}', -1),
(repeat('a3', 32), 'aa', '2023-06-20 10:00:00+00', NULL, NULL, NULL, NULL, '"soon"', NULL);

INSERT INTO market_data (synthetic_time, tx_hash, block_time, seq_num, market, mark_price, best_bid_price, best_offer_price,
    open_interest) VALUES
('2023-06-20 10:00:01+00', 'aa', '2023-06-20 10:00:01+00', 0, repeat('a1', 32), 1, 1, 1, 1),
('2023-06-20 10:00:01.000005+00', 'aa', '2023-06-20 10:00:01+00', 5, repeat('a1', 32), 123456789012345678901234567, 1000, NULL, 32),
('2023-06-20 10:00:00.000009+00', 'aa', '2023-06-20 10:00:00+00', 9, repeat('a1', 32), 2, 2, 2, 2),
('2023-06-20 10:00:00.000001+00', 'aa', '2023-06-20 10:00:00+00', 1, repeat('a2', 32), 0, 0, 0, 0);

-- The last one is between a party and itself, and has numbers outside of the lists.
INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, aggressor,
    buy_order, sell_order, type) VALUES
('2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:00+00', 0, repeat('71', 32), repeat('a1', 32), 1000, 10, repeat('b1', 32), repeat('b2', 32), 1, repeat('81', 32), repeat('91', 32), 1),
('2023-06-20 10:00:01+00', 'aa', '2023-06-20 10:00:01+00', 0, repeat('72', 32), repeat('a1', 32), 1050, 12, repeat('b2', 32), repeat('b1', 32), 2, repeat('82', 32), repeat('92', 32), 1),
('2023-06-20 10:00:01.000001+00', 'aa', '2023-06-20 10:00:01+00', 1, repeat('73', 32), repeat('a1', 32), 990, 10, repeat('b1', 32), 'network', NULL, repeat('83', 32), repeat('93', 32), 3),
('2023-06-20 10:59:59.120456+00', 'aa', '2023-06-20 10:59:59.120456+00', 0, repeat('74', 32), repeat('a1', 32), 1010, 10, repeat('b2', 32), repeat('b2', 32), 7, repeat('84', 32), repeat('94', 32), 9);

INSERT INTO positions (market_id, party_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price,
    average_entry_market_price, loss, adjustment, tx_hash, block_time, pending_open_volume, pending_realised_pnl,
    pending_unrealised_pnl, pending_average_entry_price, pending_average_entry_market_price, loss_socialisation_amount,
    distressed_status) VALUES
(repeat('a1', 32), repeat('b1', 32), 10, 0, 0, 1000, 1000, 0, 0, '', '2023-06-20 10:00:00+00', 10, 0, 0, 1000, 1000, 0, 'POSITION_STATUS_UNSPECIFIED'),
(repeat('a1', 32), repeat('b1', 32), -9223372036854775807, -0.5000000000000000, 123456789012345678901234567, 995.25, 995, 0, 0, 'aa', '2023-06-20 10:00:01+00', 8, -0.5, 123456789012345678901234567.49, 1, 996.5, -2.5, 'POSITION_STATUS_DISTRESSED'),
(repeat('a2', 32), repeat('b1', 32), 0, 7, 0, 0, 0, 0, 0, '', '2023-06-20 10:00:00+00', 0, 7, 0, 0, 0, 0, 'POSITION_STATUS_UNSPECIFIED'),
(repeat('a1', 32), 'network', 3, 0, 0, 990, 990, 0, 0, '', '2023-06-20 10:00:01+00', 3, 0, 0, 990, 990, 0, 'POSITION_STATUS_CLOSED_OUT');

-- 11 trades in part, 12 is amended, 13 expires one day, 14 is parked and then cancelled, 15 has numbers outside of the
-- lists, 16 is of the network, 17 rests since the newest block, 18 is parked.
INSERT INTO orders (id, market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason,
    version, batch_id, pegged_offset, pegged_reference, lp_id, created_at, updated_at, expires_at, tx_hash, block_time,
    seq_num, post_only, reduce_only) VALUES
(repeat('11', 32), repeat('a1', 32), repeat('b1', 32), 1, 1000, 10, 10, 1, 1, 1, 'first', 0, 1, 0, NULL, NULL, NULL, '2023-06-20 10:00:00+00', NULL, NULL, 'aa', '2023-06-20 10:00:00+00', 0, true, false),
(repeat('11', 32), repeat('a1', 32), repeat('b1', 32), 1, 1000, 10, 4, 1, 1, 7, 'first', 0, 1, 0, NULL, NULL, NULL, '2023-06-20 10:00:00+00', '2023-06-20 10:00:01+00', NULL, 'aa', '2023-06-20 10:00:01+00', 0, true, false),
(repeat('12', 32), repeat('a1', 32), repeat('b2', 32), 2, 1010, 5, 5, 1, 1, 1, '', NULL, 1, 3, NULL, 0, NULL, '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00', '1970-01-01 00:00:00+00', 'aa', '2023-06-20 10:00:00+00', 1, false, true),
(repeat('12', 32), repeat('a1', 32), repeat('b2', 32), 2, 1006, 6, 6, 1, 1, 1, '', NULL, 2, 3, NULL, 0, NULL, '2023-06-20 10:00:00+00', '2023-06-20 10:00:01+00', '1970-01-01 00:00:00+00', 'aa', '2023-06-20 10:00:01+00', 1, false, true),
(repeat('12', 32), repeat('a1', 32), repeat('b2', 32), 2, 1005, 7, 7, 1, 1, 1, '', NULL, 2, 3, NULL, 0, NULL, '2023-06-20 10:00:00+00', '2023-06-20 10:00:01+00', '1970-01-01 00:00:00+00', 'aa', '2023-06-20 10:00:01+00', 2, false, true),
(repeat('13', 32), repeat('a1', 32), repeat('b2', 32), 2, 1005, 9, 9, 2, 1, 1, 'a "quoted", ünusual' || E'\n' || 'reference', 0, 1, 0, NULL, NULL, NULL, '2023-06-20 10:00:00+00', NULL, '2023-06-21 10:00:00.000456+00', 'aa', '2023-06-20 10:00:00+00', 2, false, false),
(repeat('14', 32), repeat('a1', 32), repeat('b1', 32), 1, 0, 20, 20, 1, 1, 8, NULL, 0, 1, 0, 5, 2, NULL, '2023-06-20 10:00:01+00', NULL, NULL, 'aa', '2023-06-20 10:00:01+00', 3, false, false),
(repeat('14', 32), repeat('a1', 32), repeat('b1', 32), 1, 0, 20, 20, 1, 1, 3, NULL, 0, 1, 0, 5, 2, NULL, '2023-06-20 10:00:01+00', NULL, NULL, 'aa', '2023-06-20 10:59:59.120456+00', 1, false, false),
(repeat('15', 32), repeat('a2', 32), repeat('b1', 32), 7, 123456789012345678901234567, 1, 1, 77, 9, 99, NULL, 50, 0, 0, NULL, 9, NULL, '2023-06-20 10:00:01+00', NULL, NULL, 'aa', '2023-06-20 10:00:01+00', 4, false, false),
(repeat('16', 32), repeat('a1', 32), 'network', 2, 0, 3, 3, 4, 3, 4, '', 26, 1, 0, NULL, NULL, NULL, '2023-06-20 10:00:01+00', NULL, NULL, 'aa', '2023-06-20 10:00:01+00', 5, false, false),
(repeat('17', 32), repeat('a1', 32), repeat('b1', 32), 1, 999, 30, 30, 6, 1, 1, '', 0, 1, 0, NULL, NULL, '', '2023-06-20 10:59:59.120456+00', NULL, NULL, 'aa', '2023-06-20 10:59:59.120456+00', 0, false, false),
(repeat('18', 32), repeat('a1', 32), repeat('b1', 32), 2, 0, 8, 8, 1, 1, 8, '', 0, 1, 0, NULL, 1, repeat('1f', 32), '2023-06-20 10:59:59.120456+00', NULL, NULL, 'aa', '2023-06-20 10:59:59.120456+00', 2, false, false);

INSERT INTO deposits (id, status, party_id, asset, amount, foreign_tx_hash, credited_timestamp, created_timestamp, tx_hash,
    block_time) VALUES
(repeat('d4', 32), 'STATUS_OPEN', repeat('b1', 32), repeat('f1', 32), 123456789012345678901234567, '', '1970-01-01 00:00:00+00', '2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:00+00'),
(repeat('d4', 32), 'STATUS_FINALIZED', repeat('b1', 32), repeat('f1', 32), 123456789012345678901234567, '0xABCDEF', '2023-06-20 10:00:01.000456+00', '2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:01+00'),
(repeat('d5', 32), 'STATUS_OPEN', repeat('b2', 32), 'VOTE', NULL, '', '1970-01-01 00:00:00+00', '2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:00+00'),
(repeat('d6', 32), 'STATUS_CANCELLED', 'network', 'VOTE', 7, '', '1970-01-01 00:00:00+00', '2023-06-20 10:00:01+00', 'aa', '2023-06-20 10:00:01+00');

INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time) VALUES
('1', 'network', repeat('f1', 32), '', 12, 'aa', '2023-06-20 10:00:00+00'),
('2', 'network', repeat('f1', 32), repeat('a1', 32), 1, 'aa', '2023-06-20 10:00:00+00'),
('3', repeat('b1', 32), repeat('f1', 32), '', 4, 'aa', '2023-06-20 10:00:00+00'),
('4', repeat('b1', 32), repeat('f1', 32), repeat('a1', 32), 3, 'aa', '2023-06-20 10:00:00+00'),
('5', repeat('b2', 32), 'VOTE', '', 4, 'aa', '2023-06-20 10:00:00+00'),
('6', repeat('b2', 32), repeat('f1', 32), repeat('a2', 32), 99, 'aa', '2023-06-20 10:00:00+00');

INSERT INTO balances (account_id, block_time, tx_hash, balance) VALUES
('1', '2023-06-20 10:00:00+00', 'aa', 123456789012345678901234567),
('3', '2023-06-20 10:00:00+00', 'aa', 500),
('5', '2023-06-20 10:00:00+00', 'aa', 9),
('5', '2023-06-20 10:00:01+00', 'aa', 7),
('6', '2023-06-20 10:00:01+00', 'aa', 1);

INSERT INTO delegations (party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num) VALUES
(repeat('b1', 32), repeat('c1', 32), 1, 100, 'aa', '2023-06-20 10:00:00+00', 0),
(repeat('b1', 32), repeat('c1', 32), 1, 150, 'aa', '2023-06-20 10:00:00+00', 1),
(repeat('b1', 32), repeat('c2', 32), 1, 123456789012345678901234567, 'aa', '2023-06-20 10:00:00+00', 2),
(repeat('b2', 32), repeat('c1', 32), 2, NULL, 'aa', '2023-06-20 10:00:01+00', 0);

INSERT INTO rewards (party_id, asset_id, market_id, reward_type, epoch_id, amount, percent_of_total, "timestamp",
    tx_hash, block_time, seq_num) VALUES
(repeat('b1', 32), repeat('f1', 32), '', 'ACCOUNT_TYPE_GLOBAL_REWARD', 1, 10, 66.6, '2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:00+00', 0),
(repeat('b2', 32), repeat('f1', 32), '', 'ACCOUNT_TYPE_GLOBAL_REWARD', 1, 5, 33.3, '2023-06-20 10:00:00+00', 'aa', '2023-06-20 10:00:00+00', 1),
(repeat('b1', 32), 'VOTE', repeat('a1', 32), 'ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES', 2, 123456789012345678901234567, 100, '2023-06-20 10:00:01+00', 'aa', '2023-06-20 10:00:01+00', 0),
(repeat('b1', 32), 'VOTE', '', 'A "new" type, ünlisted', 3, 1, 100, '2023-06-20 10:00:01+00', 'aa', '2023-06-20 10:00:01+00', 1);

INSERT INTO withdrawals (id, party_id, amount, asset, status, ref, foreign_tx_hash, created_timestamp,
    withdrawn_timestamp, ext, tx_hash, block_time) VALUES
(repeat('d1', 32), repeat('b1', 32), 250, repeat('f1', 32), 'STATUS_OPEN', '', '', '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00',
    '{"erc20": {"receiverAddress": "0x5555555555555555555555555555555555555555"}}', 'aa', '2023-06-20 10:00:00+00'),
(repeat('d1', 32), repeat('b1', 32), 250, repeat('f1', 32), 'STATUS_FINALIZED', '17', '0xABCDEF', '2023-06-20 10:00:00+00', '2023-06-20 10:00:01.000456+00',
    '{"erc20": {"receiverAddress": "0x5555555555555555555555555555555555555555"}}', 'aa', '2023-06-20 10:00:01+00'),
(repeat('d2', 32), repeat('b2', 32), 123456789012345678901234567.000, 'VOTE', 'STATUS_REJECTED', 'a "quoted", ünusual' || E'\n' || 'reference', '', '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00',
    '{}', 'aa', '2023-06-20 10:00:00+00'),
(repeat('d3', 32), repeat('b2', 32), NULL, 'VOTE', 'STATUS_OPEN', '', '', '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00',
    '{"solana": {"receiver": "x"}}', 'aa', '2023-06-20 10:00:00+00');

INSERT INTO oracle_specs (id, created_at, updated_at, signers, filters, status, tx_hash, block_time,
    internal_conditions) VALUES
(repeat('e1', 32), '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00', '[]', '[]', 'STATUS_ACTIVE', 'aa', '2023-06-20 10:00:00+00', NULL),
(repeat('e1', 32), '2023-06-20 10:00:00+00', '2023-06-20 10:00:01+00',
    '[{"pubKey": {"key": "ab01"}}, {"ethAddress": {"address": "0x5555555555555555555555555555555555555555"}}]',
    '[{"key": {"name": "prices.BTC.value", "type": 2, "numberDecimalPlaces": 5}, "conditions": [{"operator": 2, "value": 1}]},
      {"key": {"name": "prices.BTC.timestamp", "type": "TYPE_TIMESTAMP"}, "conditions": null}]',
    'STATUS_DEACTIVATED', 'aa', '2023-06-20 10:00:01+00', NULL),
(repeat('e2', 32), '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00', NULL, NULL, 'STATUS_ACTIVE', 'aa', '2023-06-20 10:00:00+00',
    '[{"operator": "OPERATOR_GREATER_THAN_OR_EQUAL", "value": "1687255200"}]'),
(repeat('e3', 32), '2023-06-20 10:00:00+00', '1970-01-01 00:00:00+00', NULL, NULL, 'STATUS_UNSPECIFIED', 'aa', '2023-06-20 10:00:00+00', NULL);

INSERT INTO protocol_upgrade_proposals (upgrade_block_height, network_release_tag, approvers, status, tx_hash,
    block_time) VALUES
(100, 'v0.73.0', ARRAY[repeat('c1', 32)], 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:00+00'),
(100, 'v0.73.0', ARRAY[repeat('c1', 32), repeat('c2', 32)], 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED', 'aa', '2023-06-20 10:00:01+00'),
(100, 'v0.74.0', ARRAY[repeat('c1', 32)], 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:00+00'),
(200, 'v1.0.0', '{}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED', 'aa', '2023-06-20 10:00:00+00');

INSERT INTO network_limits (block_time, tx_hash, can_propose_market, can_propose_asset, propose_market_enabled,
    propose_asset_enabled, genesis_loaded, propose_market_enabled_from, propose_asset_enabled_from) VALUES
('2023-06-20 10:00:00+00', 'aa', false, false, false, false, false, '1970-01-01 00:00:00+00', '1970-01-01 00:00:00+00'),
('2023-06-20 10:00:01+00', 'aa', true, false, true, false, true, '2023-06-20 10:00:00.5+00', '1970-01-01 00:00:00+00');

INSERT INTO network_parameters (key, value, tx_hash, block_time) VALUES
('spam.pow.difficulty', '20', 'aa', '2023-06-20 10:00:00+00'),
('spam.pow.numberOfPastBlocks', '501', 'aa', '2023-06-20 10:00:00+00'),
('spam.pow.numberOfTxPerBlock', '3', 'aa', '2023-06-20 10:00:00+00'),
('spam.pow.increaseDifficulty', '1', 'aa', '2023-06-20 10:00:00+00'),
('spam.pow.hashFunction', 'md5', 'aa', '2023-06-20 10:00:00+00');

-- As after the newest block, had it been an upgrade's.
INSERT INTO node_state (upgrade_ready, upgrade_height, updated_at) VALUES (true, 3, '2023-06-20 10:59:59.120456+00');

INSERT INTO blocks (block_time, height, hash) VALUES
('2023-06-20 10:00:00+00', 1, repeat('01', 32)),
('2023-06-20 10:00:01+00', 2, repeat('02', 32)),
('2023-06-20 10:59:59.120456+00', 3, repeat('0a', 32));
