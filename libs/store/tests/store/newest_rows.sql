-- The tables of newest rows, recomputed from history. Before each query: the history table and that of its newest rows.

-- blocks: last_block
SELECT true, block_time, height, hash FROM blocks ORDER BY height DESC LIMIT 1;

-- balances: current_balances
SELECT DISTINCT ON (account_id) account_id, tx_hash, block_time, balance
FROM balances ORDER BY account_id, block_time DESC;

-- delegations: delegations_current
SELECT DISTINCT ON (party_id, node_id, epoch_id) *
FROM delegations ORDER BY party_id, node_id, epoch_id, block_time DESC, seq_num DESC;

-- network_parameters: network_parameters_current
SELECT DISTINCT ON (key) * FROM network_parameters ORDER BY key, block_time DESC;

-- protocol_upgrade_proposals: protocol_upgrade_proposals_current
SELECT DISTINCT ON (upgrade_block_height, network_release_tag) *
FROM protocol_upgrade_proposals
ORDER BY upgrade_block_height, network_release_tag, block_time DESC;

-- assets: assets_current
SELECT DISTINCT ON (id) id, name, symbol, decimals, quantum, erc20_contract, status, block_time
FROM assets ORDER BY id, block_time DESC;

-- markets: markets_current
SELECT DISTINCT ON (id) id, coalesce(tradable_instrument->'instrument'->>'code', ''), '',
    coalesce(tradable_instrument->'instrument'->'future'->>'quoteName', ''),
    coalesce(tradable_instrument->'instrument'->'future'->>'settlementAsset', ''),
    coalesce(decimal_places, 0), 0, trading_mode, state, (market_timestamps->>'open')::int8, block_time
FROM markets ORDER BY id, block_time DESC;

-- positions: positions_current
SELECT DISTINCT ON (party_id, market_id) party_id, market_id, open_volume, realised_pnl, unrealised_pnl,
    average_entry_price, block_time, pending_open_volume, pending_realised_pnl, pending_unrealised_pnl,
    pending_average_entry_market_price, loss_socialisation_amount, distressed_status
FROM positions ORDER BY party_id, market_id, block_time DESC;

-- orders: orders_current
SELECT DISTINCT ON (id) id, min(block_time) OVER (PARTITION BY id), market_id, party_id, side, price, size,
    remaining, time_in_force, type, status, reference, reason, version, batch_id, pegged_offset,
    pegged_reference, lp_id, created_at, updated_at, expires_at, post_only, reduce_only, block_time, seq_num,
    status = 8 OR (status = 1 OR status = 7) AND remaining > 0 AND time_in_force NOT IN (0, 3, 4)
FROM orders ORDER BY id, block_time DESC, seq_num DESC;

-- orders: orders_rested
SELECT id, block_time, until, market_id, side, price, remaining
FROM (SELECT DISTINCT ON (id, block_time) * FROM orders ORDER BY id, block_time, seq_num DESC) AS last_of_block,
    LATERAL (
        SELECT min(block_time) AS until FROM orders AS later
        WHERE later.id = last_of_block.id AND later.block_time > last_of_block.block_time
    ) AS later
WHERE until IS NOT NULL AND price <> 0
    AND (status = 1 OR status = 7) AND remaining > 0 AND time_in_force NOT IN (0, 3, 4);

-- deposits: deposits_current
SELECT DISTINCT ON (id) id, status::text, party_id, asset, amount, foreign_tx_hash, credited_timestamp,
    created_timestamp, block_time
FROM deposits ORDER BY id, block_time DESC;

-- withdrawals: withdrawals_current
SELECT DISTINCT ON (id) id, party_id, amount, asset, status::text, ref, foreign_tx_hash, created_timestamp,
    withdrawn_timestamp, ext, block_time
FROM withdrawals ORDER BY id, block_time DESC;
