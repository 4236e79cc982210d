-- Texts of other users with the settings `hostile.long`, `hostile.markup` and `hostile.right_to_left`.
INSERT INTO withdrawals (id, party_id, amount, asset, status, ref, foreign_tx_hash, created_timestamp,
    withdrawn_timestamp, ext, tx_hash, block_time)
SELECT id, party_id, amount, asset, status, current_setting('hostile.long'), current_setting('hostile.markup'),
    created_timestamp, withdrawn_timestamp, ext, tx_hash, block_time + interval '2 hours'
FROM withdrawals WHERE id = repeat('d1', 32) ORDER BY block_time DESC LIMIT 1;

INSERT INTO protocol_upgrade_proposals (upgrade_block_height, network_release_tag, approvers, status, tx_hash, block_time)
VALUES
    (300, current_setting('hostile.markup'), ARRAY[current_setting('hostile.right_to_left')],
        'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:01+00'),
    (301, current_setting('hostile.right_to_left'), '{}',
        'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:01+00');

UPDATE oracle_specs SET filters = jsonb_build_array(jsonb_build_object(
    'key', jsonb_build_object('name', current_setting('hostile.markup'), 'type', 2),
    'conditions', jsonb_build_array(jsonb_build_object('operator', 1, 'value', current_setting('hostile.right_to_left')))))
WHERE id = repeat('e1', 32) AND signers IS NOT NULL;

INSERT INTO rewards (party_id, asset_id, market_id, reward_type, epoch_id, amount, percent_of_total, "timestamp", tx_hash,
    block_time, seq_num)
VALUES (repeat('b1', 32), 'VOTE', '', current_setting('hostile.markup'), 9, 1, 100, '2023-06-20 10:00:01+00', 'aa',
    '2023-06-20 10:00:01+00', 9);

-- Names: of a market, of what it is quoted in, and of an asset.
INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, trading_mode, state, market_timestamps,
    position_decimal_places)
VALUES (repeat('a1', 32), 'aa', '2023-06-20 10:00:02+00', jsonb_build_object('instrument', jsonb_build_object(
    'code', current_setting('hostile.markup'), 'name', current_setting('hostile.right_to_left'),
    'future', jsonb_build_object('quoteName', current_setting('hostile.long'), 'settlementAsset', repeat('f1', 32)))),
    2147483647, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', '{}', -2147483648);

INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, lifetime_limit, withdraw_threshold, status,
    tx_hash, block_time)
VALUES (repeat('f1', 32), current_setting('hostile.long'),
    current_setting('hostile.right_to_left') || current_setting('hostile.markup'), -1, 1, '', '', 0, 0,
    'STATUS_ENABLED', 'aa', '2023-06-20 10:00:02+00');
