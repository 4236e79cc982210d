-- Values that have no form in an answer.
SET session_replication_role = replica;
UPDATE oracle_specs SET status = 'NEW', internal_conditions = NULL,
    signers = '[{"newKey": {}}, null, {"pubKey": {"key": "ab"}}]',
    filters = '[{"key": {"name": "p", "type": "TYPE_NEW_KIND", "numberDecimalPlaces": 1e30},
        "conditions": [{"operator": "OPERATOR_NEW", "value": 5}, 7]}, "x"]';
UPDATE withdrawals SET status = 'NEW', amount = 'NaN', ext = '[1]';
UPDATE protocol_upgrade_proposals_current SET status = 'NEW', approvers = ARRAY['a', NULL, 'b'],
    upgrade_block_height = -upgrade_block_height;
UPDATE accounts SET type = 77 WHERE type = 4;
UPDATE current_balances SET balance = 'NaN';
UPDATE trades_candle SET volume = 18446744073709551616, high = 'NaN';
UPDATE rewards SET amount = 'NaN', percent_of_total = 'NaN', epoch_id = -epoch_id;
UPDATE delegations_current SET amount = CASE WHEN amount > 5 THEN 'NaN'::numeric END;
UPDATE markets_current SET trading_mode = 'NEW';
UPDATE market_data SET mark_price = 'NaN';
UPDATE assets_current SET status = 'NEW', quantum = 'NaN';
UPDATE trades SET size = -size, price = 'NaN', type = 77, aggressor = 77;
UPDATE positions_current SET distressed_status = 'NEW', realised_pnl = 'NaN', pending_realised_pnl = 'Infinity',
    pending_unrealised_pnl = 'NaN', loss_socialisation_amount = '-Infinity';
UPDATE orders_current SET side = 77, price = 'NaN', size = -1, status = 77, time_in_force = 77, type = 77,
    pegged_reference = 77, pegged_offset = 'NaN';
UPDATE deposits_current SET status = 'NEW', amount = 'NaN';
UPDATE withdrawals_current SET status = 'NEW', amount = 'NaN', ext = '{"n": 1e400}';
INSERT INTO ledger VALUES ('2023-06-20 10:00:00.000001+00', '3', '1', 'NaN', 'tx', '2023-06-20 10:00:00+00',
    '2023-06-20 10:00:00+00', 1, 2, 'TRANSFER_TYPE_NEW');
UPDATE network_parameters_current SET value = 'many';
